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
import { versionOf } from './machine.ts'
import type { Backend, Measure, Settings } from './settings.ts'

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

async function withRunner(
  store: ExecutionStore,
): Promise<{ event(): Promise<unknown>; tree(): Promise<unknown>; close(): Promise<void> }> {
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
    async close() {
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
function byUpdate(path: string): { event(): Promise<unknown>; close(): void } {
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
    close: () => db.close(),
  }
}

const beside = (at: number): Goal<'DurableRunner' | 'load, transition, commit'> => ({
  at,
  variant: 'DurableRunner',
  beside: 'load, transition, commit',
  target: { max: 1.5 },
})

const GOALS = [1, 16, 256].map(beside)

/** Both workloads on one store: an event, and a parent with its child from the beginning to the end. */
async function measure(
  name: string,
  store: ExecutionStore,
  more: Record<string, () => Promise<unknown>>,
  settings: Settings,
  onProgress: (part: number) => void,
) {
  const { event, tree, close } = await withRunner(store)
  try {
    const hand = await byHand(store)
    const variants = { DurableRunner: event, 'load, transition, commit': hand, ...more }
    const events = await measureCommits(name, variants, GOALS, settings, (part) => onProgress(part / 2))
    const trees = await measureCommits(name, { DurableRunner: tree }, [], settings, (part) =>
      onProgress((1 + part) / 2),
    )
    return [
      ...events.map((result) => ({ ...result, workload: 'event' })),
      ...trees.map((result) => ({ ...result, workload: 'parent and child' })),
    ]
  } finally {
    await close()
  }
}

const sqlite: Measure = {
  name: 'runner-sqlite',
  run: (settings, onProgress) =>
    inFolder(settings.dir, async (folder) => {
      await using store = await AsyncSqliteStore.open(join(folder, 'store.db'))
      const rows = byUpdate(join(folder, 'rows.db'))
      try {
        return await measure('runner sqlite', store, { 'XState and UPDATE': rows.event }, settings, onProgress)
      } finally {
        rows.close()
      }
    }),
}

const redis: Measure = {
  name: 'runner-redis',
  async run(settings, onProgress) {
    await using server = await startServer('redis', { own: true })
    await using store = await RedisStore.connect(server.url)
    return await measure('runner redis', store, {}, settings, onProgress)
  },
}

const postgres: Measure = {
  name: 'runner-postgres',
  async run(settings, onProgress) {
    await using server = await startServer('postgres', { own: true })
    await using store = await PostgresStore.connect(server.url)
    return await measure('runner postgres', store, {}, settings, onProgress)
  },
}

export const runner: Backend = {
  measures: [sqlite, redis, postgres],
  describe: async () => [['xstate', 'better-sqlite3', 'ioredis', 'postgres'].map(versionOf).join(', ')],
}
