import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { asyncStore, type Execution, type ExecutionStore } from '@harel/store-base'
import { DictStore } from '@harel/store-dict'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import { DurableRunner, type RunnerOptions } from '@harel/xstate'
import { type KindName, NoServer, startServer } from '@harel-tooling/test-servers'
import { onTestFinished } from 'vitest'
import type { AnyStateMachine } from 'xstate'

interface Place {
  readonly address: string
  /** Why there is none. */
  readonly reason?: string
  readonly remove: () => Promise<void>
}

function fileInFolder(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'harel-xstate-'))
  return { address: join(folder, 'harel.db'), remove: async () => rmSync(folder, { recursive: true, force: true }) }
}

/** The path of a file that does not exist yet, in a folder that goes with the test. */
export function freshFile(): string {
  const { address, remove } = fileInFolder()
  onTestFinished(remove)
  return address
}

/** Where stores of a kind meet: a file, or a server of its own. */
export async function placeOf(kind: KindName | 'sqlite' | 'libsql-file'): Promise<Place> {
  if (kind === 'sqlite' || kind === 'libsql-file') return fileInFolder()
  try {
    const server = await startServer(kind, { own: true })
    return { address: server.url, remove: () => server.stop() }
  } catch (error) {
    if (!(error instanceof NoServer) || ['1', 'true'].includes(process.env.CI ?? '')) throw error
    return { address: '', reason: error.message, remove: async () => {} }
  }
}

/** One store of each kind, empty. */
export const stores: readonly { name: string; open: () => Promise<ExecutionStore> }[] = [
  { name: 'DictStore', open: async () => asyncStore(new DictStore({ copy: true })) },
  { name: 'SqliteStore', open: async () => asyncStore(SqliteStore.open(freshFile())) },
  { name: 'AsyncSqliteStore', open: () => AsyncSqliteStore.open(freshFile()) },
]

/** A store that goes with the test. */
export async function openStore(open = stores[0]?.open): Promise<ExecutionStore> {
  if (open === undefined) throw new Error('there is no store to open')
  const store = await open()
  onTestFinished(() => store.close())
  return store
}

/** A clock that stands still until it is moved, in epoch seconds. */
export class TestClock {
  now = 1_700_000_000
  readonly read = (): number => this.now
}

/** A runner that goes with the test; its warnings are kept. */
export function runnerOn<const M extends readonly AnyStateMachine[]>(
  store: ExecutionStore,
  options: RunnerOptions<M>,
): DurableRunner<M> & { warnings: string[] } {
  const warnings: string[] = []
  const runner = new DurableRunner(store, { onWarning: (message) => warnings.push(message), ...options })
  onTestFinished(() => runner.close())
  return Object.assign(runner, { warnings })
}

/** Lets it run until the test has finished. */
export function keepRunning(runner: DurableRunner<readonly AnyStateMachine[]>): void {
  const abort = new AbortController()
  const running = runner.run({ signal: abort.signal })
  onTestFinished(async () => {
    abort.abort()
    await running
  })
}

/** Waits until it holds. */
export async function until(holds: () => boolean | Promise<boolean>, seconds = 20): Promise<void> {
  for (const end = Date.now() + seconds * 1000; !(await holds()); await sleep(10)) {
    if (Date.now() > end) throw new Error(`after ${seconds} seconds it does not hold: ${holds}`)
  }
}

/** The stored execution, which has to exist. */
export async function stored(store: ExecutionStore, id: string): Promise<Execution> {
  const execution = await store.load(id)
  if (execution === undefined) throw new Error(`there is no ${id}`)
  return execution
}

/** What the machine of a stored execution has as its context. */
export async function contextOf(store: ExecutionStore, id: string): Promise<unknown> {
  return ((await stored(store, id)).context.xstate as { context: unknown }).context
}

/** Everything that comes. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

/** Everything that a store shows of its executions and queues. */
export async function everythingIn(store: ExecutionStore) {
  const ids = await store.idsWithPrefix('')
  const traces = await Promise.all(ids.map((id) => store.readTrace(id)))
  return {
    executions: await Promise.all(ids.map((id) => stored(store, id))),
    traces,
    outbox: await store.pendingOutbox(),
    spawns: await store.pendingSpawns(),
    timers: await store.dueTimers(1e18),
  }
}

/** Lets go of all that nobody holds. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc')
  // What was looked at by a weak reference is held until the next turn.
  await sleep(0)
  runInNewContext('gc')()
}

/** The same store, with some methods of another kind. */
export const withMethods = (store: ExecutionStore, methods: Partial<ExecutionStore>): ExecutionStore =>
  new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(methods, key) ?? Reflect.get(target, key, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })

/** The same store, counting the calls of a method. */
export function counting(store: ExecutionStore): {
  store: ExecutionStore
  calls: Map<string, number>
  rows: () => number
} {
  const calls = new Map<string, number>()
  let rows = 0
  const counted = new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return async (...given: unknown[]) => {
        calls.set(String(key), (calls.get(String(key)) ?? 0) + 1)
        const answer: unknown = await member.apply(target, given)
        if (Array.isArray(answer) && /^pending|^due/.test(String(key))) rows += answer.length
        return answer
      }
    },
  })
  return { store: counted, calls, rows: () => rows }
}

/** As many sweeps as it takes until there is nothing more to do. */
export async function sweepUp(
  clock: TestClock,
  runner: { sweep(): Promise<number>; settled(): Promise<void> },
  rounds = 12,
) {
  for (let n = 0; n < rounds; n++) {
    clock.now += 3
    await runner.sweep()
    await runner.settled()
  }
}
