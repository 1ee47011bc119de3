/** The servers that are measured. */
import { startServer, type TestServer } from '@harel-tooling/test-servers'

type Name = Parameters<typeof startServer>[0]

const started = new Map<Name, Promise<TestServer>>()

/** One for all measures, of its own and as durable as it gets: it ends with this process. */
export function serverOf(name: Name): Promise<TestServer> {
  const server = started.get(name) ?? startServer(name, { own: true })
  started.set(name, server)
  return server
}
