import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: { include: ['test/*.test.ts'], globalSetup: 'test/mongo.setup.ts', testTimeout: 120_000, hookTimeout: 60_000 },
})
