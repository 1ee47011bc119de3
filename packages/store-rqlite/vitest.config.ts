import { defineConfig } from 'vitest/config'

/** All tests, on the nodes that a set-up starts. */
const on = (nodes: 'one' | 'three') => ({
  test: {
    name: `${nodes} of rqlite`,
    globalSetup: `test/servers/${nodes}.setup.ts`,
    include: ['test/*.test.ts'],
    testTimeout: 120_000,
  },
})

// HAREL_TEST_ALL: on three nodes, and with more rounds of killing.
export default defineConfig({ test: { projects: [on(process.env.HAREL_TEST_ALL ? 'three' : 'one')] } })
