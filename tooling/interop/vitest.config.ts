import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/*.interop.test.ts'],
    // The first run installs the Python package.
    globalSetup: './src/install.ts',
    reporters: ['default', './src/summary.ts'],
    testTimeout: 300_000,
    // A server is installed for the first run.
    hookTimeout: 600_000,
  },
})
