import type { ExecutionStore, OutboxEntry } from '@harel/store-base'
import type { MemoryBackend } from '../memory-database.js'
import { type Mutant, replace } from './mutant.js'

/** Runs before each acknowledgement. */
const whenAcked =
  (act: (backend: MemoryBackend, method: 'ackOutbox' | 'ackSpawn', seqs: readonly number[]) => void) =>
  (backend: MemoryBackend) => {
    for (const method of ['ackOutbox', 'ackSpawn'] as const) {
      replace(backend, method, (ack) => (seqs) => {
        act(backend, method, seqs)
        ack(seqs)
      })
    }
  }

const rowsOf = ({ tables }: MemoryBackend, method: 'ackOutbox' | 'ackSpawn') =>
  method === 'ackOutbox' ? tables.outbox : tables.spawns

/** Changes what both queues are asked for. */
const pages =
  (change: (page: { limit: number; after: number }) => { limit: number; after: number }) =>
  (backend: MemoryBackend) => {
    replace(backend, 'pendingOutbox', (read) => (page) => read(change(page)))
    replace(backend, 'pendingSpawns', (read) => (page) => read(change(page)))
  }

const changeEvents = (store: ExecutionStore, change: (entry: OutboxEntry) => OutboxEntry): Partial<ExecutionStore> => ({
  pendingOutbox: async (page) => (await store.pendingOutbox(page)).map(change),
})

export const queueMutants: readonly Mutant[] = [
  {
    name: 'keeps a row of each event that was delivered',
    backend(backend) {
      replace(backend, 'ackOutbox', (ack) => (seqs) => {
        for (const seq of seqs) {
          backend.publishDefinition({ id: 'delivered', version: `${seq}`, definition: '1', publishedAt: null })
        }
        ack(seqs)
      })
    },
  },
  {
    name: 'loses the last event of a commit',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => write({ ...commit, emits: commit.emits.slice(0, -1) }))
    },
  },
  {
    name: 'loses the last spawn of a commit',
    backend(backend) {
      replace(
        backend,
        'writeCompanions',
        (write) => (commit) => write({ ...commit, spawns: commit.spawns.slice(0, -1) }),
      )
    },
  },
  {
    name: 'queues in reverse order',
    backend(backend) {
      replace(
        backend,
        'writeCompanions',
        (write) => (commit) =>
          write({ ...commit, emits: commit.emits.toReversed(), spawns: commit.spawns.toReversed() }).reverse(),
      )
    },
  },
  {
    name: 'reads the youngest first',
    backend(backend) {
      replace(backend, 'pendingOutbox', (read) => (page) => read(page).reverse())
      replace(backend, 'pendingSpawns', (read) => (page) => read(page).reverse())
    },
  },
  {
    name: 'gives seqs out again when the queue is empty',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => {
        const { tables } = backend
        tables.lastEvent = Math.max(0, ...tables.outbox.keys())
        tables.lastSpawn = Math.max(0, ...tables.spawns.keys())
        return write(commit)
      })
    },
  },
  {
    name: 'counts seqs handle by handle',
    backend(backend) {
      let last = 0
      backend.queue = (targetId, event) => {
        backend.tables.outbox.set(++last, { seq: last, targetId, event })
        return last
      }
    },
  },
  {
    name: 'takes seqs in blocks, handle by handle',
    backend(backend) {
      const { tables } = backend
      let next = 0
      let last = 0
      backend.queue = (targetId, event) => {
        if (next === last) {
          next = tables.lastEvent
          last = next + 100
          tables.lastEvent = last
        }
        tables.outbox.set(++next, { seq: next, targetId, event })
        return next
      }
      replace(
        backend,
        'pendingOutbox',
        () =>
          ({ limit, after }) =>
            [...tables.outbox.values()]
              .filter(({ seq }) => seq > after)
              .sort((a, b) => a.seq - b.seq)
              .slice(0, limit),
      )
    },
  },
  {
    name: 'returns a seq although nothing was emitted',
    store: (store) => ({
      async commit(execution, changes) {
        const seqs = await store.commit(execution, changes)
        return seqs.length === 0 ? [0] : seqs
      },
    }),
  },
  {
    name: 'takes nobody for an empty name',
    store: (store) => changeEvents(store, (entry) => ({ ...entry, targetId: entry.targetId ?? '' })),
  },
  {
    name: 'keeps times of events to the second',
    store: (store) =>
      changeEvents(store, ({ event, ...rest }) => ({
        ...rest,
        event: { ...event, createdTime: event.createdTime?.replace(/\.\d+/, '') ?? null },
      })),
  },
  {
    name: 'acknowledges everything up to a seq',
    backend: whenAcked((backend, method, seqs) => {
      const rows = rowsOf(backend, method)
      for (const seq of rows.keys()) if (seq < Math.max(0, ...seqs.filter((given) => rows.has(given)))) rows.delete(seq)
    }),
  },
  {
    name: 'acknowledges in both queues',
    backend: whenAcked(({ tables }, _method, seqs) => {
      for (const seq of seqs) {
        tables.outbox.delete(seq)
        tables.spawns.delete(seq)
      }
    }),
  },
  {
    name: 'fails to acknowledge what is not there',
    backend: whenAcked((backend, method, seqs) => {
      for (const seq of seqs) if (!rowsOf(backend, method).has(seq)) throw new RangeError('no such row')
    }),
  },
  {
    name: 'acknowledges the first of a list only',
    backend(backend) {
      replace(backend, 'ackOutbox', (ack) => (seqs) => ack(seqs.slice(0, 1)))
      replace(backend, 'ackSpawn', (ack) => (seqs) => ack(seqs.slice(0, 1)))
    },
  },
  {
    name: 'ignores the limit of a queue',
    store: (store) => ({
      pendingOutbox: ({ after = 0 } = {}) => store.pendingOutbox({ after }),
      pendingSpawns: ({ after = 0 } = {}) => store.pendingSpawns({ after }),
    }),
  },
  {
    name: 'repeats the last entry of a page',
    backend: pages(({ limit, after }) => ({ limit, after: after - 1 })),
  },
  {
    name: 'skips an entry between two pages',
    backend: pages(({ limit, after }) => ({ limit, after: after < 0 ? after : after + 1 })),
  },
  {
    name: 'reads queues in pages of ten at most',
    backend: pages(({ limit, after }) => ({ limit: Math.min(limit, 10), after })),
  },
  {
    name: 'drops the undelivered events of a sender that goes on',
    backend(backend) {
      const senders = new Map<number, string>()
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        if (!verdict.applied) return verdict
        for (const [seq, sender] of senders) if (sender === given.id) backend.tables.outbox.delete(seq)
        for (const seq of verdict.seqs) senders.set(seq, given.id)
        return verdict
      })
    },
  },
  {
    name: 'queues each child once',
    backend(backend) {
      replace(
        backend,
        'writeCompanions',
        (write) => (commit) =>
          write({ ...commit, spawns: [...new Map(commit.spawns.map((spawn) => [spawn.childId, spawn])).values()] }),
      )
    },
  },
  {
    name: 'forgets the context of a spawn',
    store: (store) => ({
      pendingSpawns: async (page) => (await store.pendingSpawns(page)).map((entry) => ({ ...entry, context: {} })),
    }),
  },
  {
    name: 'queues at most a hundred children',
    backend(backend) {
      replace(
        backend,
        'writeCompanions',
        (write) => (commit) => write({ ...commit, spawns: commit.spawns.slice(0, 100) }),
      )
    },
  },
  {
    name: 'drops the spawn of a child that exists',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const { spawns } = backend.tables
        for (const { seq, childId } of spawns.values()) if (childId === given.id) spawns.delete(seq)
        return commit(given)
      })
    },
  },
  {
    name: 'stops a queue at a row that cannot be read',
    backend(backend) {
      replace(backend, 'pendingOutbox', (read) => (page) => {
        const rows = read(page)
        const bad = rows.findIndex(({ event }) => !event.includes('"kind":'))
        return bad < 0 ? rows : rows.slice(0, bad)
      })
    },
  },
  {
    name: 'does not report rows that cannot be read',
    open: (database) => (options) => database.open({ ...options, onWarning: () => {} }),
  },
  {
    name: 'takes no notice of who asks for rows that cannot be read',
    store: (store) => ({ pendingOutbox: ({ onUnreadable: _, ...page } = {}) => store.pendingOutbox(page) }),
  },
  {
    name: 'says of a row that cannot be read what number the row before it has',
    store: (store) => ({
      pendingOutbox: (page) => {
        const tell = page?.onUnreadable
        return store.pendingOutbox({ ...page, onUnreadable: tell && ((seq, error) => tell(seq - 1, error)) })
      },
    }),
  },
]
