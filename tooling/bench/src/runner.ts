/** DurableRunner beside what one would write by hand around XState, and beside the runner of Python harel. */
import { join } from 'node:path'
import { asyncStore, type ExecutionStore } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { RedisStore } from '@harel/store-redis'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import { DurableRunner } from '@harel/xstate'
import { startServer } from '@harel-tooling/test-servers'
import { inFolder } from './backends/sqlite-database.ts'
import { startPython } from './peers/python-runner.ts'
import type { Result } from './results.ts'
import { byHand, byRow } from './runner-by-hand.ts'
import { counter, each, inTurn, parent } from './runner-machines.ts'
import type { Measure, Settings } from './settings.ts'
import { type Goal, measureVariants, type Variant } from './variants.ts'

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

const SYNC = 'DurableRunner, SqliteStore'

/** One read and one durable write: nothing that keeps a machine needs less. */
const ROW = 'XState and a row'

const PYTHON: Goal[] = [
  ...LEVELS.map((at) => ({ at, variant: 'DurableRunner', beside: IN_PYTHON, target: { min: 5 } })),
  // Alone, for it writes one commit after the other.
  { at: 1, variant: SYNC, beside: IN_PYTHON, target: { min: 5 } },
]

const HAND: Goal[] = LEVELS.map((at) => ({
  at,
  variant: 'DurableRunner',
  beside: 'load, transition, commit',
  target: { max: 1.5 },
}))

interface Place {
  readonly store: ExecutionStore
  /** One whose commits are written on the caller's thread, if the database has such a store. */
  readonly sync?: ExecutionStore
  /** Where Python finds a database of the same kind. */
  readonly url: string
}

type Kind = 'sqlite' | 'redis' | 'postgres'

/** An empty database, for as long as it is used. */
const places: Readonly<Record<Kind, <T>(settings: Settings, use: (place: Place) => Promise<T>) => Promise<T>>> = {
  sqlite: ({ dir }, use) =>
    inFolder(dir, async (folder) => {
      await using store = await AsyncSqliteStore.open(join(folder, 'store.db'))
      await using sync = asyncStore(SqliteStore.open(join(folder, 'sync.db')))
      return await use({ store, sync, url: join(folder, 'python.db') })
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

/** A file of its own for rows that stand beside a store. */
const rowsAt = (kind: Kind, url: string): string => (kind === 'sqlite' ? `${url}-rows` : url)

type Runs = Readonly<Record<string, () => Promise<unknown>>>

/** Measures them in turns, at each concurrency that is asked for. */
async function measureRuns(
  kind: Kind,
  workload: 'event' | 'parent and child',
  runs: Runs,
  goals: readonly Goal[],
  { seconds, concurrency }: Settings,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  const entries = Object.entries(runs).map(([name, run]): [string, Variant] => [name, { role: 'store', run }])
  const variants = Object.fromEntries(entries)
  const results: Result[] = []
  for (const [index, atOnce] of concurrency.entries()) {
    const task = { backend: `runner ${kind}`, workload, concurrency: atOnce, seconds, goals }
    const progress = (part: number) => onProgress((index + part) / concurrency.length)
    results.push(...(await measureVariants(variants, task, progress)))
  }
  return results
}

/** A runner on each of the stores, by what it is called. */
async function withRunners(store: ExecutionStore, sync: ExecutionStore | undefined) {
  const runner = await withRunner(store)
  const other = sync && (await withRunner(sync))
  const runsOf = (workload: keyof Workloads): Runs => ({
    DurableRunner: runner[workload],
    ...(other && { [SYNC]: other[workload] }),
  })
  return {
    event: runsOf('event'),
    tree: runsOf('tree'),
    async [Symbol.asyncDispose]() {
      await other?.[Symbol.asyncDispose]()
      await runner[Symbol.asyncDispose]()
    },
  }
}

/** An event, beside what one would write by hand; and a parent with its child from the beginning to the end. */
const besideHand = (kind: Kind): Measure => ({
  name: `${kind}-runner`,
  workload: 'runner',
  run: (settings, onProgress) =>
    places[kind](settings, async ({ store, sync, url }) => {
      await using runners = await withRunners(store, sync)
      await using rows = await byRow(kind, rowsAt(kind, url))
      const besides = { 'load, transition, commit': await byHand(store), [ROW]: rows.event }
      const variants = { ...runners.event, ...besides }
      const events = await measureRuns(kind, 'event', variants, HAND, settings, (part) => onProgress(part / 2))
      const trees = await measureRuns(kind, 'parent and child', runners.tree, [], settings, (part) =>
        onProgress((1 + part) / 2),
      )
      return [...events, ...trees]
    }),
})

/** The same, beside Python harel on a database of the same kind. */
const besidePython = (kind: Kind): Measure => ({
  name: `${kind}-python-runner`,
  workload: 'runner',
  run: (settings, onProgress) =>
    places[kind](settings, async ({ store, sync, url }) => {
      using python = await withPython(url)
      await using runners = await withRunners(store, sync)
      await using rows = await byRow(kind, rowsAt(kind, url))
      const event = { ...runners.event, [IN_PYTHON]: python.event, [ROW]: rows.event }
      const tree = { ...runners.tree, [IN_PYTHON]: python.tree }
      const events = await measureRuns(kind, 'event', event, PYTHON, settings, (part) => onProgress(part / 2))
      // In Python each call carries on what all others have started, and fails where one of them does it, too.
      const alone = { ...settings, concurrency: settings.concurrency.filter((atOnce) => atOnce === 1) }
      const trees = await measureRuns(kind, 'parent and child', tree, PYTHON, alone, (part) =>
        onProgress((1 + part) / 2),
      )
      return [...events, ...trees]
    }),
})

/** What is measured of the runner on a store. */
export const runnerOn = (kind: Kind): Measure[] => [besideHand(kind), besidePython(kind)]
