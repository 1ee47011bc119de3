/**
 * The process that works: it delivers events, starts children and fires timers, until it is let go or killed. It holds
 * nothing that matters: whatever is under way when it dies is still in the store for the next one.
 */
import { setTimeout } from 'node:timers/promises'
import { newEvent, outbox, spawns, timeoutEventId, timers } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { handle, start } from './runner.ts'

/** Entries that are worked on at once. The store writes what is committed at once in one transaction. */
const BATCH = 256
/** How long to wait when there is nothing to do, in milliseconds. */
const IDLE = 10

// Whoever started this process may be gone already.
let stopping = process.connected === false
process.once('disconnect', () => {
  stopping = true
})

const [path = ''] = process.argv.slice(2)
await using store = await AsyncSqliteStore.open(path, { traceMax: 0 })

await Promise.all([forever(deliverEvents), forever(startChildren), forever(fireTimers)])

async function deliverEvents(): Promise<number> {
  return sweep(outbox(store, BATCH), async (entries) => {
    // Events of one execution in the order in which they were sent, executions side by side.
    const queues = Map.groupBy(entries, ({ targetId }) => targetId)
    await each([...queues], async ([targetId, queue]) => {
      for (const { event } of queue) if (targetId !== null) await handle(store, targetId, event)
    })
    await store.ackOutbox(entries.map(({ seq }) => seq))
  })
}

async function startChildren(): Promise<number> {
  return sweep(spawns(store, BATCH), async (entries) => {
    await each(entries, async ({ parentId, childId: id, context: { machine, input } }) => {
      await start(store, { id, parentId, machine: String(machine), input })
    })
    await store.ackSpawn(entries.map(({ seq }) => seq))
  })
}

async function fireTimers(): Promise<number> {
  return sweep(timers(store, Date.now() / 1000, BATCH), (due) =>
    each(due, async ({ executionId, path, fireAt }) => {
      // The same id whoever fires it, so that it is handled once. A machine that leaves a state by another event and
      // enters it again must also see to it that this timer is still the one that it has armed.
      const event = newEvent({ id: timeoutEventId(executionId, path, fireAt), kind: path })
      const handled = await handle(store, executionId, event)
      if (!handled) await store.deleteTimer(executionId, path, fireAt)
    }),
  )
}

/** Works through a queue once, a batch at a time. Returns how many entries it has seen to. */
async function sweep<Entry>(queue: AsyncIterable<Entry>, work: (batch: Entry[]) => Promise<void>): Promise<number> {
  let count = 0
  let batch: Entry[] = []
  const flush = async () => {
    count += batch.length
    if (batch.length > 0) await work(batch)
    batch = []
  }
  for await (const entry of queue) {
    batch.push(entry)
    if (batch.length < BATCH) continue
    await flush()
    if (stopping) break
  }
  await flush()
  return count
}

async function each<Entry>(entries: readonly Entry[], work: (entry: Entry) => Promise<void>): Promise<void> {
  await Promise.all(entries.map(work))
}

async function forever(round: () => Promise<number>): Promise<void> {
  while (!stopping) if ((await round()) === 0) await setTimeout(IDLE)
}
