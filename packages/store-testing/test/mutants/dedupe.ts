import type { MemoryBackend } from '../memory-database.js'
import { type Mutant, replace, tick } from './mutant.js'

const eventIds = (change: (eventId: string) => string) => (backend: MemoryBackend) => {
  replace(backend, 'mark', (mark) => (id, eventId) => mark(id, change(eventId)))
  replace(backend, 'isProcessed', (isProcessed) => (id, eventId) => isProcessed(id, change(eventId)))
}

const newestMarks = (count: number) => (backend: MemoryBackend) => {
  replace(backend, 'mark', (mark) => (id, eventId) => {
    mark(id, eventId)
    backend.tables.marks.set(id, new Set([...(backend.tables.marks.get(id) ?? [])].slice(-count)))
  })
}

export const dedupeMutants: readonly Mutant[] = [
  {
    name: 'remembers events of the whole store together',
    backend(backend) {
      replace(
        backend,
        'isProcessed',
        () => (_id, eventId) => [...backend.tables.marks.values()].some((marks) => marks.has(eventId)),
      )
    },
  },
  { name: 'remembers the last event only, for ever', backend: newestMarks(1) },
  { name: 'remembers fewer events than it promises', says: { dedupe: 10 }, backend: newestMarks(9) },
  { name: 'compares event ids without case', backend: eventIds((id) => id.toLowerCase()) },
  { name: 'trims event ids', backend: eventIds((id) => id.trim()) },
  { name: 'composes event ids', backend: eventIds((id) => id.normalize('NFC')) },
  { name: 'cuts event ids off', backend: eventIds((id) => id.slice(0, 255)) },
  {
    name: 'does not mark with a first commit',
    backend(backend) {
      replace(
        backend,
        'writeCompanions',
        (write) => (commit) => write(commit.expected === 0 ? { ...commit, processedEventId: undefined } : commit),
      )
    },
  },
  {
    name: 'fails to mark an event again',
    backend(backend) {
      replace(backend, 'mark', (mark) => (id, eventId) => {
        if (backend.isProcessed(id, eventId)) throw new RangeError('duplicate key')
        mark(id, eventId)
      })
    },
  },
  {
    name: 'marks the events that it emits',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => {
        for (const { eventId } of commit.emits) backend.mark(commit.id, eventId)
        return write(commit)
      })
    },
  },
  {
    name: 'marks every commit, with an event or not',
    backend(backend) {
      replace(
        backend,
        'isProcessed',
        (isProcessed) => (id, eventId) => backend.load(id) !== undefined || isProcessed(id, eventId),
      )
    },
  },
  {
    name: 'does not look for marks in loadForEvent',
    backend(backend) {
      backend.loadForEvent = (id) => ({ data: backend.load(id), processed: false })
    },
  },
  {
    name: 'tells of events of executions that are not there',
    store: (store) => ({
      async loadForEvent(id, eventId) {
        const found = await store.loadForEvent(id, eventId)
        return { ...found, processed: found.processed || found.execution === undefined }
      },
    }),
  },
  {
    name: 'reads the mark first and the state later',
    store: (store) => ({
      async loadForEvent(id, eventId) {
        const pending = store.isProcessed(id, eventId)
        await tick()
        const processed = await pending
        await tick()
        return { execution: await store.load(id), processed }
      },
      commit: async (execution, changes) => {
        const pending = store.commit(execution, changes)
        await tick()
        await tick()
        return pending
      },
    }),
  },
]
