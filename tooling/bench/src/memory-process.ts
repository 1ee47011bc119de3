/**
 * Relays everything that is pending, or lists everything, and prints what that took as JSON. Started with `--expose-gc`:
 * what can be collected is not counted as held.
 */
import { type ExecutionStore, executions, outbox } from '@harel/store-base'
import { PAGE } from './contender.ts'
import { percentile } from './measure.ts'
import { openStore } from './open-store.ts'

export interface Taken {
  readonly rows: number
  readonly seconds: number
  /** Of a page, from the first row to the next page's. */
  readonly p50Ms: number
  readonly p99Ms: number
  /** By how much the heap grew at most, in MiB, after everything was collected that could be. */
  readonly heapMiB: number
  /** By how much the memory of the whole process grew at most, in MiB. */
  readonly rssMiB: number
}

const MIB = 2 ** 20
/** How often the heap is looked at. */
const LOOKS = 20

/** Acknowledges each page when it is through. */
async function* relay(store: ExecutionStore): AsyncGenerator<unknown> {
  let seqs: number[] = []
  for await (const { seq } of outbox(store, PAGE)) {
    if (seqs.push(seq) === PAGE) {
      await store.ackOutbox(seqs)
      seqs = []
    }
    yield seq
  }
  await store.ackOutbox(seqs)
}

/** @param total how many rows there should be */
async function take(rows: AsyncGenerator<unknown>, total: number): Promise<Taken> {
  const pagesBetween = Math.max(1, Math.floor(total / PAGE / LOOKS))
  const collect = globalThis.gc ?? (() => {})
  const heap = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = { heap: heap(), rss: process.memoryUsage.rss() }
  const pages: number[] = []
  // Not the maximum that the system knows: it counts what this process was before it became this program.
  let [count, most, rss] = [0, 0, 0]
  const start = performance.now()
  let last = start
  for await (const _ of rows) {
    if (++count % PAGE > 0) continue
    const now = performance.now()
    pages.push(now - last)
    rss = Math.max(rss, process.memoryUsage.rss())
    if (pages.length % pagesBetween === 0) most = Math.max(most, heap())
    last = performance.now()
  }
  const seconds = (performance.now() - start) / 1000
  return {
    rows: count,
    seconds,
    p50Ms: percentile(pages, 0.5),
    p99Ms: percentile(pages, 0.99),
    heapMiB: Math.max(0, most - before.heap) / MIB,
    rssMiB: Math.max(0, rss - before.rss) / MIB,
  }
}

const [backend = '', url = '', what = '', total = ''] = process.argv.slice(2)
await using store = await openStore(backend, url)
await store.load('nothing')
const rows = what === 'relay' ? relay(store) : executions(store, { limit: PAGE })
console.log(JSON.stringify(await take(rows, Number(total))))
