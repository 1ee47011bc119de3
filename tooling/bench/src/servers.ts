/** The servers that are measured. */
import { startServer, type TestServer } from '@harel-tooling/test-servers'

type Name = Parameters<typeof startServer>[0]

const started = new Map<string, Promise<TestServer>>()

function once(key: string, start: () => Promise<TestServer>): Promise<TestServer> {
  const server = started.get(key) ?? start()
  started.set(key, server)
  return server
}

/** One for all measures, of its own and as durable as it gets: it ends with this process. */
export const serverOf = (name: Name): Promise<TestServer> => once(name, () => startServer(name, { own: true }))

/** The same Redis once more, with its modules. */
export const redisWithSearch = (): Promise<TestServer> =>
  once('redis with search', () => startServer('redis', { own: true, search: true }))
