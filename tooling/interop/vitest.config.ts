import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/*.interop.test.ts'],
    // The first run installs the Python package.
    globalSetup: './src/install.ts',
    reporters: ['default', './src/summary.ts'],
    testTimeout: 120_000,
  },
})
