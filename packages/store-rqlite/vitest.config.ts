import { defineConfig } from 'vitest/config'

const common = { testTimeout: 30_000 }

// HAREL_TEST_ALL: the contracts on three nodes, and more of the tests in which nodes are killed.
export default defineConfig({
  test: process.env.HAREL_TEST_ALL
    ? {
        ...common,
        globalSetup: 'test/all/server.setup.ts',
        include: ['test/all/*.test.ts', 'test/restart.crash.test.ts'],
        fileParallelism: false,
      }
    : { ...common, globalSetup: 'test/server.setup.ts', include: ['test/*.test.ts'] },
})
