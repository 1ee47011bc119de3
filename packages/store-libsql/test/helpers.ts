import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import {
  type CommitChanges,
  type Execution,
  type LibsqlOptions,
  LibsqlStore,
  newEvent,
  newExecution,
} from '@harel/store-libsql'
import { type Client, type Config, createClient } from '@libsql/client'
import { afterAll, onTestFinished } from 'vitest'

function newFolder(): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'harel-libsql-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The URL of a file that does not exist yet, in a folder that goes with the test. */
export function freshFile(): string {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  return `file:${join(folder, 'harel.db')}`
}

/** A copy of a database that Python harel has written. */
export function pythonFile(name: string): string {
  const url = freshFile()
  copyFileSync(join(import.meta.dirname, 'vectors', `${name}.db`), pathOf(url))
  return url
}

/** The path of a file's URL. */
export const pathOf = (url: string): string => url.slice('file:'.length)

/** The same for all tests of a file. */
export function lastingFile(): string {
  const { folder, remove } = newFolder()
  afterAll(remove)
  return `file:${join(folder, 'harel.db')}`
}

/** A client past the stores, which goes with the test. */
export function clientOf(config: Config): Client {
  const client = createClient(config)
  onTestFinished(() => client.close())
  return client
}

/** A store that goes with the test. */
export async function open(config: Config, options?: LibsqlOptions): Promise<LibsqlStore> {
  const store = await LibsqlStore.connect(config, options)
  onTestFinished(() => store.close())
  return store
}

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', ...fields })

/** One of everything that a commit can write. */
export const everything = (name: string): CommitChanges => ({
  emits: [{ targetId: name, event: newEvent({ kind: 'Tick' }) }],
  processedEventId: `${name}-event`,
  timers: [{ action: 'schedule', path: 'P', fireAt: 1 }],
  spawns: [{ childId: `${name}-child`, rootPath: '', context: {} }],
  trace: { event: 'Tick' },
})

export const TABLES = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace']

/** How many rows each table of the store has, in the order of a commit's parts. */
export async function rows(client: Client, prefix = 'harel'): Promise<number[]> {
  const counts = TABLES.map((table) => `(SELECT COUNT(*) FROM ${prefix}_${table})`)
  const { rows, columns } = await client.execute(`SELECT ${counts.join(', ')}`)
  return columns.map((_, index) => Number(rows[0]?.[index]))
}

/** Starts a program of the folder `programs` in a process of its own, which goes with the test. */
export function start(program: string, ...args: string[]): ChildProcessByStdio<null, Readable, null> {
  const file = join(import.meta.dirname, 'programs', program)
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

/** What a program has printed when it ends by itself. */
export async function run(program: string, ...args: string[]): Promise<string> {
  const child = start(program, ...args)
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`${program} ended with ${code}; it printed ${printed}`)
  return printed
}
