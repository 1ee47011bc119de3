import { type CommitChanges, type Execution, newEvent, newExecution } from '@harel/store-base'
import { type PostgresOptions, PostgresStore } from '@harel/store-postgres'
import { TcpProxy } from '@harel/store-testing/faults'
import postgres, { type Options, type Sql } from 'postgres'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

export type ClientOptions = Options<Record<string, never>>

const quiet: ClientOptions = { onnotice: () => {} }

/** A pool past the stores, which goes with the test. */
export function connect(url: string, options: ClientOptions = {}): Sql {
  const sql = postgres(url, { ...quiet, max: 4, ...options })
  onTestFinished(() => sql.end({ timeout: 1 }))
  return sql
}

/** A store of its own pool, which goes with the test. */
export async function open(
  url: string,
  options: PostgresOptions & { client?: ClientOptions } = {},
): Promise<PostgresStore> {
  const store = await PostgresStore.connect(url, options)
  onTestFinished(() => store.close())
  return store
}

/** Stands between stores and a server, and goes with the test. */
export async function proxyTo(url: string): Promise<TcpProxy> {
  const proxy = await TcpProxy.to(url)
  onTestFinished(() => proxy[Symbol.asyncDispose]())
  return proxy
}

let databases = 0

/**
 * A database for the tests of a file or of a part of it.
 *
 * @param create what stands behind its name in `CREATE DATABASE`
 * @returns `missing`: why the server cannot have such a database, known when the tests run
 */
export function useDatabase(server: { url: string }, create = ''): { readonly url: string; readonly missing?: string } {
  const name = `harel_test_${process.pid}_${++databases}`
  const url = new URL(server.url)
  url.pathname = `/${name}`
  const database: { url: string; missing?: string } = { url: url.href }
  const onServer = async (statement: string) => {
    const sql = postgres(server.url, { ...quiet, max: 1 })
    await sql.unsafe(statement).finally(() => sql.end())
  }
  beforeAll(async () => {
    await onServer(`CREATE DATABASE ${name} TEMPLATE template0 ${create}`).catch((error: Error) => {
      if (create === '') throw error
      database.missing = error.message
    })
  })
  afterAll(() => onServer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
  return database
}

let schemas = 0

/** The name of a schema that does not exist yet in the database of this file. */
export const newSchema = (): string => `s${++schemas}`

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', ...fields })

export const many = (count: number, prefix = 'e'): Execution[] =>
  Array.from({ length: count }, (_, n) => execution(`${prefix}${String(n).padStart(4, '0')}`))

/** One of everything that a commit can write. */
export const everything = (name: string): CommitChanges => ({
  emits: [{ targetId: name, event: newEvent({ kind: 'Tick' }) }],
  processedEventId: `${name}-event`,
  timers: [{ action: 'schedule', path: 'P', fireAt: 1 }],
  spawns: [{ childId: `${name}-child`, rootPath: '', context: {} }],
  trace: { event: 'Tick' },
})

const TABLES = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace']

/** How many rows each table has, in the order of `TABLES`. */
export async function rows(sql: Sql, schema: string, prefix = 'harel'): Promise<number[]> {
  const counts = TABLES.map((table) => `(SELECT count(*)::int FROM "${schema}"."${prefix}_${table}")`)
  const [row] = await sql.unsafe(`SELECT ARRAY[${counts}] AS counts`)
  return row?.counts
}

export const versions = (executions: readonly Execution[]): number[] => executions.map(({ version }) => version)

/** Lets so many milliseconds pass. */
export const pass = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))
