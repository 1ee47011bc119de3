import { defineConfig } from 'vitest/config'

// Many tests start processes, on machines that may be busy.
export default defineConfig({ test: { testTimeout: 120_000 } })
