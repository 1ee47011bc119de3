import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecutionStore, executions } from '@harel/store-base'
import { DurableRunner } from '@harel/xstate'
import { NoServer, startServer } from '@harel-tooling/test-servers'
import { expect, onTestFinished, test } from 'vitest'
import { freshFile, keepRunning, openStore, runnerOn, stored, until } from './helpers.js'
import { machinesWritingTo, type OrderInput } from './programs/machines.js'
import { type Kind, openShared } from './programs/stores.js'

const orders: OrderInput[] = Array.from({ length: 60 }, (_, n) => ({
  id: `order-${n}`,
  warehouse: `warehouse-${n % 3}`,
  refusals: n % 3,
}))

async function place(runner: DurableRunner<ReturnType<typeof machinesWritingTo>>): Promise<void> {
  for (const id of ['warehouse-0', 'warehouse-1', 'warehouse-2']) await runner.create('warehouse', { id })
  await runner.create('shop', { id: 'shop', input: { orders } })
}

const areDone = async (store: ExecutionStore): Promise<boolean> => {
  if ((await stored(store, 'shop')).status !== 'DONE') return false
  return (await store.pendingOutbox({ limit: 1 })).length === 0
}

/** Everything about each execution that does not depend on who worked on it, how often, and when. */
async function ends(store: ExecutionStore): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for await (const { id } of executions(store)) {
    const { definitionId, status, outcome, error, activePath, parentId, deferred, context } = await stored(store, id)
    if (id.startsWith('harel.')) {
      // Work that was tried again must have come to its end.
      expect(definitionId).toBe('harel.sweep')
      continue
    }
    const { value, context: own, output, timers } = context.xstate as Record<string, unknown>
    found[id] = { definitionId, status, outcome, error, activePath, parentId, deferred, value, own, output, timers }
  }
  return found
}

interface Effect {
  kind: string
  id: string
  key: string
}

/** For each effect on each order the number of different keys, and how many calls there were in all. */
function effectsIn(file: string): { keys: Record<string, number>; calls: number } {
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const byEffect = new Map<string, Set<string>>()
  for (const line of lines) {
    const { kind, id, key }: Effect = JSON.parse(line)
    byEffect.set(`${id} ${kind}`, (byEffect.get(`${id} ${kind}`) ?? new Set()).add(key))
  }
  const keys = [...byEffect].map(([effect, found]): [string, number] => [effect, found.size])
  return { keys: Object.fromEntries(keys.toSorted()), calls: lines.length }
}

async function withoutFaults(): Promise<{ ends: Record<string, unknown>; effects: ReturnType<typeof effectsIn> }> {
  const file = freshFile()
  const store = await openStore()
  const runner = runnerOn(store, { machines: machinesWritingTo(file) })
  keepRunning(runner)
  await place(runner)
  await until(() => areDone(store))
  return { ends: await ends(store), effects: effectsIn(file) }
}

/** Where the processes meet, for as long as the test takes; the reason, where no server can be had. */
async function address(kind: Kind): Promise<{ url: string } | { reason: string }> {
  if (kind === 'sqlite') return { url: freshFile() }
  try {
    const server = await startServer(kind, { own: true })
    onTestFinished(() => server.stop())
    return { url: server.url }
  } catch (error) {
    if (!(error instanceof NoServer) || ['1', 'true'].includes(process.env.CI ?? '')) throw error
    return { reason: error.message }
  }
}

async function expectSameEnds(kind: Kind, url: string): Promise<void> {
  const wanted = await withoutFaults()
  expect(wanted.effects.calls).toBe(Object.values(wanted.effects.keys).reduce((sum, n) => sum + n, 0))

  const effects = freshFile()
  const store = await openShared(kind, url)
  onTestFinished(() => store.close())
  const worker = (): ChildProcess => {
    const file = join(import.meta.dirname, 'programs/worker.ts')
    const child = spawn(process.execPath, [file, kind, url, effects], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const workers = [worker(), worker(), worker()]
  await Promise.all(workers.map(async ({ stdout }) => stdout && once(stdout, 'data')))
  const placing = new DurableRunner(store, { machines: machinesWritingTo(effects), concurrency: 1 })
  await place(placing)
  await placing.close()

  let kills = 0
  for (; kills < 15 && !(await areDone(store)); kills++) {
    await sleep(100 + Math.random() * 300)
    const victim = Math.floor(Math.random() * workers.length)
    workers[victim]?.kill('SIGKILL')
    workers[victim] = worker()
  }
  await until(() => areDone(store), 60)
  expect(kills).toBeGreaterThan(2)
  // What the last ones have to tidy up.
  await until(async () => {
    const [spawns, timers] = await Promise.all([store.pendingSpawns({ limit: 1 }), store.dueTimers(1e12)])
    return spawns.length === 0 && timers.length === 0
  })
  expect(await ends(store)).toEqual(wanted.ends)
  expect(effectsIn(effects).keys).toEqual(wanted.effects.keys)
}

test.for<Kind>(['sqlite', 'redis', 'postgres'])(
  'processes that are killed at random end where a run without faults ends, each effect under its one key (%s)',
  { timeout: 300_000 },
  async (kind, { skip }) => {
    const at = await address(kind)
    if ('reason' in at) skip(at.reason)
    else await expectSameEnds(kind, at.url)
  },
)
