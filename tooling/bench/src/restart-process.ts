/**
 * Starts a runner among the executions that are there, waits until all timers that were due have fired, and prints what
 * that took as JSON. Started with `--expose-gc`: what can be collected is not counted as held.
 */
import type { ExecutionStore } from '@harel/store-base'
import { DurableRunner } from '@harel/xstate'
import { openStore } from './open-store.ts'
import { sleeper } from './runner-machines.ts'

export interface Restarted {
  readonly seconds: number
  /** Calls of the store, until no timer was due any more. */
  readonly calls: number
  /** By how much the heap grew at most, in MiB, after everything was collected that could be. */
  readonly heapMiB: number
}

const MIB = 2 ** 20
const LOOK_MS = 200

function counted(store: ExecutionStore): { store: ExecutionStore; calls(): number } {
  let calls = 0
  const proxy = new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return (...given: unknown[]) => {
        calls += 1
        return member.apply(target, given)
      }
    },
  })
  return { store: proxy, calls: () => calls }
}

const heap = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const [backend = '', url = ''] = process.argv.slice(2)
await using store = await openStore(backend, url)
const { store: watched, calls } = counted(store)
await using runner = new DurableRunner(watched, { machines: [sleeper] })
const before = heap()
const start = performance.now()
void runner.run()
let most = 0
do {
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  most = Math.max(most, heap())
} while ((await store.dueTimers(Date.now() / 1000, { limit: 1 })).length > 0)
await runner.settled()
const taken: Restarted = {
  seconds: (performance.now() - start) / 1000,
  calls: calls(),
  heapMiB: Math.max(0, most - before) / MIB,
}
console.log(JSON.stringify(taken))
