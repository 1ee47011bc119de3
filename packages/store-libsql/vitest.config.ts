import { defineConfig } from 'vitest/config'

const common = { globalSetup: 'test/server.setup.ts', testTimeout: 120_000 }

// HAREL_TEST_ALL: the contracts over a network, one after the other because a server has one writer at a time.
export default defineConfig({
  test: process.env.HAREL_TEST_ALL
    ? { ...common, include: ['test/all/*.test.ts'], fileParallelism: false }
    : { ...common, include: ['test/*.test.ts'] },
})
