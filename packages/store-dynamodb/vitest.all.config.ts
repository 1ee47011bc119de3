import { defineConfig } from 'vitest/config'

// The second implementation of DynamoDB, and the indexes.
export default defineConfig({ test: { include: ['test/all/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000 } })
