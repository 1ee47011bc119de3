/** DurableRunner beside what one would write by hand around XState, on the same store and on the bare database. */
import { join } from 'node:path'
import { type ExecutionStore, newEvent, newExecution, stamp } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { RedisStore } from '@harel/store-redis'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { DurableRunner } from '@harel/xstate'
import { startServer } from '@harel-tooling/test-servers'
import Database from 'better-sqlite3'
import { assign, emit, initialTransition, type StateValue, setup, transition } from 'xstate'
import { inFolder } from './backends/sqlite-database.ts'
import { type Goal, measureCommits } from './commits.ts'
import { startPython } from './peers/python-runner.ts'
import type { Result } from './results.ts'
import type { Measure, Settings } from './settings.ts'

/** Enough that all concurrent events are for different executions. */
const EXECUTIONS = 512

interface Stored {
  value: StateValue
  context: { n: number }
}

const count = assign<{ n: number }, { type: 'NEXT' }, undefined, { type: 'NEXT' }, never>({
  n: ({ context }) => context.n + 1,
})

/** Goes from one state to the other and back, and counts. */
const counter = setup({ types: { context: {} as { n: number }, events: {} as { type: 'NEXT' } } }).createMachine({
  id: 'counter',
  context: { n: 0 },
  initial: 'a',
  states: {
    a: { on: { NEXT: { target: 'b', actions: count } } },
    b: { on: { NEXT: { target: 'a', actions: count } } },
  },
})

const child = setup({}).createMachine({ id: 'child', initial: 'done', states: { done: { type: 'final' } }, output: 1 })

/** Starts a child and ends when it has ended: three commits, two deliveries. */
const parent = setup({ types: { emitted: {} as { type: 'ended' } }, actors: { child } }).createMachine({
  id: 'parent',
  initial: 'waiting',
  states: {
    waiting: { invoke: { src: 'child', id: 'child', onDone: 'ended' } },
    ended: { type: 'final', entry: emit({ type: 'ended' }) },
  },
})

const first = initialTransition(counter)[0]

/** The ids of executions, each in its turn. */
function inTurn(prefix: string): () => string {
  let next = 0
  return () => `${prefix}-${next++ % EXECUTIONS}`
}

const each = (prefix: string, make: (id: string) => Promise<unknown>) =>
  Promise.all(Array.from({ length: EXECUTIONS }, (_, n) => make(`${prefix}-${n}`)))

interface Workloads {
  event(): Promise<unknown>
  tree(): Promise<unknown>
}

async function withRunner(store: ExecutionStore): Promise<Workloads & AsyncDisposable> {
  const runner = new DurableRunner(store, { machines: [counter, parent] })
  const running = runner.run()
  const ended = new Map<string, () => void>()
  runner.on('ended', (_, { id }) => {
    ended.get(id)?.()
    ended.delete(id)
  })
  await each('runner', (id) => runner.create('counter', { id }))
  const turn = inTurn('runner')
  let trees = 0
  return {
    event: () => runner.send(turn(), { type: 'NEXT' }),
    tree: () =>
      new Promise<void>((resolve, reject) => {
        const id = `tree-${trees++}`
        ended.set(id, resolve)
        runner.create('parent', { id }).catch(reject)
      }),
    async [Symbol.asyncDispose]() {
      await runner.close()
      await running
    },
  }
}

/** Load, transition, commit: what a runner does without its guarantees. */
async function byHand(store: ExecutionStore): Promise<() => Promise<unknown>> {
  const { value, context } = first
  await each('hand', (id) =>
    store.save(newExecution({ id, definitionId: 'counter', context: { xstate: { value, context } } })),
  )
  const turn = inTurn('hand')
  return async () => {
    const event = newEvent({ kind: 'NEXT' })
    const { execution } = await store.loadForEvent(turn(), event.id)
    if (execution === undefined) throw new Error('an execution is gone')
    const [next] = transition(counter, counter.resolveState(execution.context.xstate as unknown as Stored), {
      type: 'NEXT',
    })
    execution.context = { xstate: { value: next.value, context: next.context } }
    stamp(execution, Date.now() / 1000)
    await store.commit(execution, { processedEventId: event.id })
  }
}

/** A row with a version, as one writes it without any store: no dedupe, no outbox, one after the other. */
function byUpdate(path: string): Pick<Workloads, 'event'> & Disposable {
  const db = new Database(path)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE machines (id TEXT PRIMARY KEY, version INTEGER, snapshot TEXT)')
  const insert = db.prepare('INSERT INTO machines VALUES (?, 1, ?)')
  const select = db.prepare<[string], { version: number; snapshot: string }>(
    'SELECT version, snapshot FROM machines WHERE id = ?',
  )
  const update = db.prepare('UPDATE machines SET version = version + 1, snapshot = ? WHERE id = ? AND version = ?')
  const snapshot = JSON.stringify({ value: first.value, context: first.context })
  for (let n = 0; n < EXECUTIONS; n++) insert.run(`row-${n}`, snapshot)
  const turn = inTurn('row')
  return {
    async event() {
      const id = turn()
      const row = select.get(id)
      if (row === undefined) throw new Error('a row is gone')
      const [{ value, context }] = transition(counter, counter.resolveState(JSON.parse(row.snapshot) as Stored), {
        type: 'NEXT',
      })
      if (update.run(JSON.stringify({ value, context }), id, row.version).changes !== 1) throw new Error('a conflict')
    },
    [Symbol.dispose]: () => void db.close(),
  }
}

/** The same with Python harel. */
async function withPython(url: string): Promise<Workloads & Disposable> {
  const python = startPython(url)
  await each('python', (id) => python.call('create', id))
  const turn = inTurn('python')
  let trees = 0
  return {
    event: () => python.call('event', turn()),
    tree: () => python.call('tree', `python-tree-${trees++}`),
    [Symbol.dispose]: () => python.end(),
  }
}

const LEVELS = [1, 16, 256]

const IN_PYTHON = 'Python DurableRunner'

const PYTHON: Goal<'DurableRunner' | typeof IN_PYTHON>[] = LEVELS.map((at) => ({
  at,
  variant: 'DurableRunner',
  beside: IN_PYTHON,
  target: { min: 5 },
}))

const HAND: Goal<'DurableRunner' | 'load, transition, commit'>[] = LEVELS.map((at) => ({
  at,
  variant: 'DurableRunner',
  beside: 'load, transition, commit',
  target: { max: 1.5 },
}))

interface Place {
  readonly store: ExecutionStore
  /** Where Python finds a database of the same kind. */
  readonly url: string
}

type Kind = 'sqlite' | 'redis' | 'postgres'

/** An empty database, for as long as it is used. */
const places: Readonly<Record<Kind, <T>(settings: Settings, use: (place: Place) => Promise<T>) => Promise<T>>> = {
  sqlite: ({ dir }, use) =>
    inFolder(dir, async (folder) => {
      await using store = await AsyncSqliteStore.open(join(folder, 'store.db'))
      return await use({ store, url: join(folder, 'python.db') })
    }),
  async redis(_, use) {
    await using server = await startServer('redis', { own: true })
    await using store = await RedisStore.connect(server.url)
    return await use({ store, url: server.url })
  },
  async postgres(_, use) {
    await using server = await startServer('postgres', { own: true })
    await using store = await PostgresStore.connect(server.url)
    return await use({ store, url: server.url })
  },
}

const named = (workload: 'event' | 'parent and child', results: readonly Result[]): Result[] =>
  results.map((result) => ({ ...result, workload }))

/** An event, beside what one would write by hand; and a parent with its child from the beginning to the end. */
const besideHand = (kind: Kind): Measure => ({
  name: `${kind}-runner`,
  workload: 'runner',
  run: (settings, onProgress) =>
    places[kind](settings, async ({ store, url }) => {
      const name = `runner ${kind}`
      await using runner = await withRunner(store)
      using rows = kind === 'sqlite' ? byUpdate(`${url}-rows`) : undefined
      const variants = {
        DurableRunner: runner.event,
        'load, transition, commit': await byHand(store),
        ...(rows && { 'XState and UPDATE': rows.event }),
      }
      const events = await measureCommits(name, variants, HAND, settings, (part) => onProgress(part / 2))
      const tree = { DurableRunner: runner.tree }
      const trees = await measureCommits(name, tree, [], settings, (part) => onProgress((1 + part) / 2))
      return [...named('event', events), ...named('parent and child', trees)]
    }),
})

/** The same, beside Python harel on a database of the same kind. */
const besidePython = (kind: Kind): Measure => ({
  name: `${kind}-python-runner`,
  workload: 'runner',
  run: (settings, onProgress) =>
    places[kind](settings, async ({ store, url }) => {
      const name = `runner ${kind}`
      using python = await withPython(url)
      await using runner = await withRunner(store)
      const event = { DurableRunner: runner.event, [IN_PYTHON]: python.event }
      const tree = { DurableRunner: runner.tree, [IN_PYTHON]: python.tree }
      const events = await measureCommits(name, event, PYTHON, settings, (part) => onProgress(part / 2))
      // In Python each call carries on what all others have started, and fails where one of them does it, too.
      const alone = { ...settings, concurrency: settings.concurrency.filter((atOnce) => atOnce === 1) }
      const trees = await measureCommits(name, tree, PYTHON, alone, (part) => onProgress((1 + part) / 2))
      return [...named('event', events), ...named('parent and child', trees)]
    }),
})

/** What is measured of the runner on a store. */
export const runnerOn = (kind: Kind): Measure[] => [besideHand(kind), besidePython(kind)]
