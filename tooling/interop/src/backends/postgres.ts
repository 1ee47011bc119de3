import { PostgresStore } from '@harel/store-postgres'
import { startServer } from '@harel-tooling/test-servers'
import client from 'postgres'
import type { Backend } from '../backend.js'

export const postgres: Backend = {
  name: 'PostgreSQL',
  start: async () => {
    const server = await startServer('postgres')
    console.log(server.describe())
    let databases = 0
    const onServer = async (statement: string) => {
      const sql = client(server.url, { max: 1 })
      await sql.unsafe(statement).finally(() => sql.end())
    }
    return {
      make: async () => {
        const name = `harel_interop_${process.pid}_${++databases}`
        await onServer(`CREATE DATABASE ${name}`)
        const url = new URL(server.url)
        url.pathname = `/${name}`
        return {
          url: url.href,
          open: (options) => PostgresStore.connect(url.href, options),
          [Symbol.asyncDispose]: () => onServer(`DROP DATABASE ${name} WITH (FORCE)`),
        }
      },
      [Symbol.asyncDispose]: () => server.stop(),
    }
  },
}
