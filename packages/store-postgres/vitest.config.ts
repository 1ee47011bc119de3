import { defineConfig } from 'vitest/config'

/** A run of tests on the server that a set-up starts. */
const on = (server: string, include: string[]) => ({
  test: {
    name: server,
    globalSetup: `test/servers/${server}.setup.ts`,
    include,
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
})
const everything = ['test/*.test.ts']
const behindPool = ['test/servers/pgbouncer.server.test.ts']

// The newest server by default; HAREL_TEST_ALL adds the oldest one, and a pool in front.
const others = [on('oldest', everything), on('pgbouncer', behindPool)]
export default defineConfig({ test: { projects: process.env.HAREL_TEST_ALL ? others : [on('newest', everything)] } })
