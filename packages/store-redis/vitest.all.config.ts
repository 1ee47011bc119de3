import { defineConfig } from 'vitest/config'

// The other servers that the store runs on.
export default defineConfig({ test: { include: ['test/all/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000 } })
