import { defineConfig } from 'vitest/config'

// HAREL_TEST_ALL: what takes longer.
const include = [process.env.HAREL_TEST_ALL ? 'test/all/*.test.ts' : 'test/*.test.ts']
export default defineConfig({ test: { include, globalSetup: 'test/server.setup.ts', testTimeout: 30_000 } })
