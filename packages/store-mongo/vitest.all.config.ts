import { defineConfig } from 'vitest/config'

// The long faults.
export default defineConfig({
  test: {
    include: ['test/all/*.test.ts'],
    globalSetup: 'test/mongo.setup.ts',
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
})
