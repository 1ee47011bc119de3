/** Orders that processes work on while they are killed at random, beside the same orders in a run without faults. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { asyncStore, type Execution, type ExecutionStore, executions } from '@harel/store-base'
import { DictStore } from '@harel/store-dict'
import { DurableRunner } from '@harel/xstate'
import { machinesWritingTo, type OrderInput } from './machines.ts'
import { openShared, type Shared } from './stores.ts'
import type { Assignment } from './worker.ts'

/** So many orders have one shop and three warehouses. */
const ORDERS_PER_SHOP = 50

/** How many calls of a store are under way at once. */
const AT_ONCE = 64

/** For so long, in seconds, nothing may happen before it is given up. */
const PATIENCE = 120

export interface KilledRunners {
  readonly shared: Shared
  readonly orders: number
  readonly processes: number
  /** By which it is decided whom to kill, and when. */
  readonly seed: number
  /** How many may be killed. */
  readonly kills: number
  /** The shortest and the longest time from one kill to the next, in seconds. */
  readonly pauses: readonly [number, number]
  readonly settings: Assignment['settings']
  /** Told every ten seconds how far it is. */
  onProgress?(text: string): void
}

export interface Survived {
  /** Processes that were killed. */
  readonly kills: number
  /** Executions that have come to their end. */
  readonly executions: number
  /** What all their versions add up to. */
  readonly commits: number
  /** Keys of the effects that were wanted, and calls that were made for them. */
  readonly effects: number
  readonly calls: number
  /** From the first order to the last, in seconds. */
  readonly seconds: number
  /** What is not as without faults: a few words each. */
  readonly different: readonly string[]
  /** Effects that were called for under another number of keys than without faults. */
  readonly doubled: readonly string[]
}

/** What is left of a run that does not depend on who worked on it, how often, and when. */
interface Ends {
  readonly executions: ReadonlyMap<string, unknown>
  /** For each effect on each order, the number of its keys. */
  readonly keys: ReadonlyMap<string, number>
  readonly commits: number
  readonly calls: number
}

const shopsOf = (orders: number): string[] =>
  Array.from({ length: Math.ceil(orders / ORDERS_PER_SHOP) }, (_, n) => `shop-${n}`)

const ordersOf = (shop: number, orders: number): OrderInput[] =>
  Array.from({ length: Math.min(ORDERS_PER_SHOP, orders - shop * ORDERS_PER_SHOP) }, (_, index) => {
    const n = shop * ORDERS_PER_SHOP + index
    return { id: `order-${n}`, warehouse: `warehouse-${shop}-${n % 3}`, refusals: n % 3 }
  })

/** Creates everything, and leaves most of what comes of it to others. */
async function place(store: ExecutionStore, effects: string, orders: number): Promise<void> {
  const runner = new DurableRunner(store, { machines: machinesWritingTo(effects), concurrency: 1 })
  for (const [n, id] of shopsOf(orders).entries()) {
    for (let third = 0; third < 3; third++) await runner.create('warehouse', { id: `warehouse-${n}-${third}` })
    await runner.create('shop', { id, input: { orders: ordersOf(n, orders) } })
  }
  await runner.close()
}

/** Tells whether there is nothing left to do. Looks only at what was not done the last time. */
function overseer(store: ExecutionStore, orders: number) {
  let open = shopsOf(orders)
  return {
    /** How many shops still sell. */
    open: () => open.length,
    async isOver(): Promise<boolean> {
      const found = await inParts(open, (id) => store.load(id))
      open = open.filter((_, index) => found[index]?.status !== 'DONE')
      if (open.length > 0) return false
      const [outbox, spawns, timers] = await Promise.all([
        store.pendingOutbox({ limit: 1 }),
        store.pendingSpawns({ limit: 1 }),
        store.dueTimers(Number.MAX_SAFE_INTEGER, { limit: 1 }),
      ])
      return outbox.length + spawns.length + timers.length === 0
    },
  }
}

async function inParts<T, R>(items: readonly T[], call: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(call))))
  }
  return results
}

function endOf(execution: Execution): unknown {
  const { definitionId, status, outcome, error, activePath, parentId, deferred, children, history } = execution
  const { value, context, output, timers } = execution.context.xstate as Record<string, unknown>
  const common = { definitionId, status, outcome, error, activePath, parentId, deferred, children, history }
  // What was invoked has its lease renewed and taken over; a machine has one version for each event, whatever happens.
  const version = definitionId === 'harel.invoked' ? 0 : execution.version
  return { ...common, value, context, output, timers, version }
}

async function endsIn(store: ExecutionStore, effects: string): Promise<Ends> {
  const ids: string[] = []
  for await (const { id, definitionId } of executions(store)) if (definitionId !== 'harel.sweep') ids.push(id)
  const found = new Map<string, unknown>()
  let commits = 0
  for (const execution of await inParts(ids, (id) => store.load(id))) {
    if (execution === undefined) continue
    commits += execution.version
    found.set(execution.id, endOf(execution))
  }
  const keys = new Map<string, Set<string>>()
  const lines = readFileSync(effects, 'utf8').split('\n').slice(0, -1)
  for (const line of lines) {
    const { kind, id, key }: { kind: string; id: string; key: string } = JSON.parse(line)
    keys.set(`${kind} of ${id}`, (keys.get(`${kind} of ${id}`) ?? new Set()).add(key))
  }
  const counts = [...keys].map(([effect, { size }]) => [effect, size] as const)
  return { executions: found, keys: new Map(counts), commits, calls: lines.length }
}

async function withoutFaults(effects: string, orders: number): Promise<Ends> {
  await using store = asyncStore(new DictStore({ copy: true }))
  await using runner = new DurableRunner(store, { machines: machinesWritingTo(effects) })
  const running = runner.run()
  await place(store, effects, orders)
  const { isOver } = overseer(store, orders)
  while (!(await isOver())) await sleep(50)
  await runner.close()
  await running
  return await endsIn(store, effects)
}

/** A process that works on what is in the store. */
class Worker {
  readonly #process: ChildProcess
  /** It has come so far that it can be killed in the middle of something. */
  isRunning = false

  constructor(assignment: Assignment) {
    const program = join(import.meta.dirname, 'worker.ts')
    const stdio = ['pipe', 'pipe', 'inherit'] as const
    this.#process = spawn(process.execPath, [program, JSON.stringify(assignment)], { stdio: [...stdio] })
    this.#process.stdout?.once('data', () => {
      this.isRunning = true
    })
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

/** Numbers from 0 to below 1 that a seed repeats (a linear congruential generator). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** What of the wanted is missing or otherwise, and what is found that nobody wants. */
function differences<T>(wanted: ReadonlyMap<string, T>, found: ReadonlyMap<string, T>): string[] {
  const names = new Set([...wanted.keys(), ...found.keys()])
  return [...names].flatMap((name) => {
    const [before, after] = [wanted.get(name), found.get(name)]
    if (isDeepStrictEqual(before, after)) return []
    return `${name}: ${JSON.stringify(after) ?? 'missing'} instead of ${JSON.stringify(before) ?? 'nothing'}`
  })
}

/**
 * Lets processes work on orders, and kills one of them at random over and over, now and then all at once.
 *
 * @throws Error when nothing happens any more before all is done
 */
export async function killRunners(options: KilledRunners): Promise<Survived> {
  const { orders, seed, pauses, shared, settings, onProgress = () => {} } = options
  const folder = mkdtempSync(join(tmpdir(), 'harel-killed-runners-'))
  const effects = join(folder, 'effects')
  writeFileSync(effects, '')
  const wanted = await withoutFaults(join(folder, 'wanted'), orders)
  onProgress(`without faults: ${wanted.executions.size} executions, ${wanted.commits} commits, ${wanted.calls} effects`)
  await using store = await openShared(shared)
  const start = (): Worker => new Worker({ shared, effects, settings })
  const workers = Array.from({ length: options.processes }, start)
  let kills = 0
  const kill = (index: number): void => {
    if (workers[index]?.isRunning !== true) return
    workers[index].kill()
    workers[index] = start()
    kills += 1
  }
  try {
    const begin = performance.now()
    const placed = place(store, effects, orders)
    const { isOver, open } = overseer(store, orders)
    const random = randomOf(seed)
    let [told, size, moved] = [begin, 0, begin]
    for (; ; await sleep(1000 * (pauses[0] + random() * (pauses[1] - pauses[0])))) {
      const now = performance.now()
      if (statSync(effects).size > size) [size, moved] = [statSync(effects).size, now]
      if (await isOver()) break
      if (now - moved > PATIENCE * 1000) throw new Error(`${open()} shops are still open, and nothing happens any more`)
      if (now - told > 10_000) {
        told = now
        onProgress(`${Math.round((now - begin) / 1000)} s: ${open()} shops open, ${kills} killed`)
      }
      // Nobody is killed any more when all is done but for what the last ones have left behind.
      if (open() === 0 || kills >= options.kills) continue
      const victim = Math.floor(random() * 1.1 * workers.length)
      if (victim < workers.length) kill(victim)
      else for (const index of workers.keys()) kill(index)
    }
    await placed
    const seconds = (performance.now() - begin) / 1000
    for (const worker of workers) worker.kill()
    const found = await endsIn(store, effects)
    return {
      kills,
      executions: found.executions.size,
      commits: found.commits,
      effects: [...wanted.keys.values()].reduce((sum, count) => sum + count, 0),
      calls: found.calls,
      seconds,
      different: differences(wanted.executions, found.executions),
      doubled: differences(wanted.keys, found.keys),
    }
  } finally {
    for (const worker of workers) worker.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}
