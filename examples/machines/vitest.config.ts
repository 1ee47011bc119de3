import { defineConfig } from 'vitest/config'

// Deadlines pass, on machines that may be busy.
export default defineConfig({ test: { testTimeout: 120_000 } })
