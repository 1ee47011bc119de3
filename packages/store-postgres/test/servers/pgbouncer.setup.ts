import { serverSetup, startServer } from '@harel-tooling/test-servers'

type Project = Parameters<ReturnType<typeof serverSetup>>[0]

/** A pool in transaction mode, which the tests take for the server. */
export default async function setUp(project: Project) {
  // One that lets the pool in without a password.
  const server = await startServer('postgres', { own: true })
  const stop = await serverSetup('pgbouncer', { upstream: server.url }, 'postgres')(project)
  return async () => {
    await stop?.()
    await server.stop()
  }
}
