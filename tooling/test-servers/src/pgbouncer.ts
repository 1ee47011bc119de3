import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgresClient from 'postgres'
import { fromDebian, libraries } from './debian.ts'
import { postgres } from './postgres.ts'
import type { Flavoured, Kind } from './server.ts'
import { enterable, unprivileged } from './user.ts'

export interface PgbouncerOptions extends Flavoured {
  /** The URL of the PostgreSQL server behind it, which lets its user in without a password. */
  readonly upstream: string
  /** Connections to that server; 5 when absent. */
  readonly poolSize?: number
}

/** A pool in transaction mode: two transactions of one client can meet two sessions of the server. */
export const pgbouncer: Kind<PgbouncerOptions> = {
  name: 'pgbouncer',
  flavours: ['1'],

  async identify(url) {
    await postgres.identify(url)
    // Through the pool the server behind it answers; only the pool's own console tells the pool's version.
    const console = Object.assign(new URL(url), { pathname: '/pgbouncer' })
    const sql = postgresClient(console.href, { max: 1, connect_timeout: 2, fetch_types: false, onnotice: () => {} })
    try {
      const [row] = await sql.unsafe('show version').simple()
      return { product: 'pgbouncer', version: String(row?.version).split(' ').pop() ?? '' }
    } finally {
      await sql.end({ timeout: 0 })
    }
  },

  async start(run, _, { upstream, poolSize = 5 }) {
    const user = unprivileged()
    const root = await fromDebian('pgbouncer')
    const usable = root === '/' ? root : await enterable(root, user)
    const { hostname, port: serverPort, username, pathname } = new URL(upstream)
    const port = await run.port()
    const data = run.dataDir('pgbouncer')
    const file = join(data, 'pgbouncer.ini')
    writeFileSync(join(data, 'users.txt'), `"${username}" ""\n`)
    writeFileSync(
      file,
      `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
admin_users = ${username}
auth_file = ${join(data, 'users.txt')}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`,
    )
    if (user) chmodSync(run.folder, 0o755)
    const url = `postgres://${username}@127.0.0.1:${port}${pathname}`
    const node = await run.launch({
      name: 'pgbouncer',
      url,
      command: join(usable, 'usr/sbin/pgbouncer'),
      args: ['-q', file],
      environment: libraries(usable),
      ...(user && { user }),
      haltSignal: 'SIGINT',
      ready: () => pgbouncer.identify(url),
    })
    return [node]
  },
}
