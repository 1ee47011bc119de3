/** What a sweep reads at once: the next part of each queue, a page at the most, whatever of it can be read. */
import type { CorruptRecord, DueTimer, OutboxEntry, QueuePage, SpawnEntry } from '@harel/store-base'
import type { Host } from './host.js'
import type { Positions } from './sweep-state.js'
import type { UnreadableWork } from './work.js'

export type Queue = UnreadableWork['queue']

export interface Unreadable {
  readonly work: UnreadableWork
  readonly error: CorruptRecord
}

export interface Page {
  readonly outbox: readonly OutboxEntry[]
  readonly spawns: readonly SpawnEntry[]
  readonly timers: readonly DueTimer[]
  readonly unreadable: readonly Unreadable[]
  /** The last row that was read of a queue, where more may stand behind it. */
  readonly ends: Positions
  /** Queues with rows whose seq no store can be told: they can be neither removed nor passed. */
  readonly beyond: readonly Queue[]
}

interface QueuePart<Entry> {
  readonly entries: readonly Entry[]
  readonly unreadable: readonly Unreadable[]
  readonly end?: number
  readonly isBeyond: boolean
}

/** A store returns as many entries as were asked for, whatever it comes by on the way: of that, the first rows. */
async function readQueue<Entry extends { readonly seq: number }>(
  queue: Queue,
  limit: number,
  after: number | undefined,
  read: (page: QueuePage) => Promise<Entry[]>,
): Promise<QueuePart<Entry>> {
  const unreadable: Unreadable[] = []
  const entries = await read({
    limit,
    after,
    onUnreadable: (seq, error) => unreadable.push({ work: { kind: 'unreadable', queue, seq }, error }),
  })
  const seqs = [...entries.map(({ seq }) => seq), ...unreadable.map(({ work }) => work.seq)].sort((a, b) => a - b)
  const end = seqs[limit - 1]
  const last = Math.min(end ?? Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER)
  return {
    entries: entries.filter(({ seq }) => seq <= last),
    unreadable: unreadable.filter(({ work }) => work.seq <= last),
    ...(end !== undefined && end === last && { end }),
    isBeyond: seqs.some((seq) => seq > Number.MAX_SAFE_INTEGER),
  }
}

export async function readPage({ store, settings }: Host, after: Positions, dueBy: number): Promise<Page> {
  const { pageSize: limit } = settings
  const [outbox, spawns, timers] = await Promise.all([
    readQueue('outbox', limit, after.outbox, (page) => store.pendingOutbox(page)),
    readQueue('spawns', limit, after.spawns, (page) => store.pendingSpawns(page)),
    store.dueTimers(dueBy, { limit, after: after.timers }),
  ])
  const lastTimer = timers.length >= limit ? timers.at(-1) : undefined
  return {
    outbox: outbox.entries,
    spawns: spawns.entries,
    timers,
    unreadable: [...outbox.unreadable, ...spawns.unreadable],
    ends: {
      ...(outbox.end !== undefined && { outbox: outbox.end }),
      ...(spawns.end !== undefined && { spawns: spawns.end }),
      ...(lastTimer && { timers: lastTimer }),
    },
    beyond: [...(outbox.isBeyond ? ['outbox' as const] : []), ...(spawns.isBeyond ? ['spawns' as const] : [])],
  }
}
