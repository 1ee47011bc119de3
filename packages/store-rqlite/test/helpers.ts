import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import {
  type CommitChanges,
  type Execution,
  newEvent,
  newExecution,
  type RqliteOptions,
  RqliteStore,
} from '@harel/store-rqlite'
import { onTestFinished } from 'vitest'

type Value = string | number | null

/** Rows that one statement gives, past the store. */
export async function request(url: string, sql: string, ...params: Value[]): Promise<Value[][]> {
  const response = await fetch(`${url}/db/request?level=strong`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([[sql, ...params]]),
  })
  const { results, error } = (await response.json()) as {
    results?: { values?: Value[][]; error?: string }[]
    error?: string
  }
  const failure = error ?? results?.[0]?.error
  if (failure !== undefined) throw new Error(failure)
  return results?.[0]?.values ?? []
}

let prefixes = 0

/** A prefix that nobody else has on a server. */
export const newPrefix = (): string => `t${process.pid}_${++prefixes}`

/** A store that goes with the test. */
export async function open(urls: string | readonly string[], options: RqliteOptions = {}): Promise<RqliteStore> {
  const store = await RqliteStore.connect(urls, options)
  onTestFinished(() => store.close())
  return store
}

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', ...fields })

export const many = (count: number): Execution[] => Array.from({ length: count }, (_, n) => execution(`e${1000 + n}`))

export const versions = (executions: readonly Execution[]): number[] => executions.map(({ version }) => version)

/** One of everything that a commit can write. */
export const everything = (name: string): CommitChanges => ({
  emits: [{ targetId: name, event: newEvent({ kind: 'Tick' }) }],
  processedEventId: `${name}-event`,
  timers: [{ action: 'schedule', path: 'P', fireAt: 1 }],
  spawns: [{ childId: `${name}-child`, rootPath: '', context: {} }],
  trace: { event: 'Tick' },
})

const TABLES = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace']

/** How many rows each table of a store has, in the order of `TABLES`. */
export async function rows(url: string, prefix: string): Promise<Value[]> {
  const counts = TABLES.map((table) => `(SELECT COUNT(*) FROM ${prefix}_${table})`)
  const [row] = await request(url, `SELECT ${counts}`)
  return row ?? []
}

/** What a call fails with. */
export const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )

/** Runs a program of the folder `programs` in a process of its own. Rejects when it fails. */
export async function run(program: string, ...args: string[]): Promise<void> {
  const file = join(import.meta.dirname, 'programs', program)
  const child = spawn(process.execPath, [file, ...args], { stdio: 'inherit' })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
}
