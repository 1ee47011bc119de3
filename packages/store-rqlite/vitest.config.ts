import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { globalSetup: 'test/server.setup.ts', testTimeout: 30_000 } })
