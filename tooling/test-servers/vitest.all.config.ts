import { defineConfig } from 'vitest/config'

// Servers that take long to install or to start: dynoxide is compiled once, which takes minutes.
export default defineConfig({ test: { include: ['test/all/*.test.ts'], testTimeout: 900_000 } })
