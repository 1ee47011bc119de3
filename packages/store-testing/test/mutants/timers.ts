import { compareBytes, type DueTimer } from '@harel/store-base'
import { byTime, type MemoryBackend } from '../memory-database.js'
import { type Mutant, replace } from './mutant.js'

/** Keeps paths and times otherwise. */
const timers = (change: (path: string, fireAt: number) => [string, number]) => (backend: MemoryBackend) => {
  replace(backend, 'arm', (arm) => (id, path, fireAt) => arm(id, ...change(path, fireAt)))
}

/** Brings the due timers in an order of its own. */
const order = (compare: (a: DueTimer, b: DueTimer) => number) => (backend: MemoryBackend) => {
  replace(backend, 'dueTimers', (due) => (now, page) => due(now, page).sort(compare))
}

/** Which seconds the clock on the wall shows. */
const wallClock = (seconds: number): number => seconds - new Date(seconds * 1000).getTimezoneOffset() * 60

export const timerMutants: readonly Mutant[] = [
  {
    name: 'takes a timer as due only after its time',
    backend(backend) {
      replace(backend, 'dueTimers', (due) => (now, page) => due(now, page).filter(({ fireAt }) => fireAt < now))
    },
  },
  {
    name: 'compares times as the clock on the wall shows them',
    backend(backend) {
      timers((path, fireAt) => [path, wallClock(fireAt)])(backend)
      replace(backend, 'dueTimers', (due) => (now, page) => due(wallClock(now), page))
    },
  },
  {
    name: 'takes every timer as due',
    backend(backend) {
      replace(backend, 'dueTimers', (due) => (_now, page) => due(Number.POSITIVE_INFINITY, page))
    },
  },
  {
    name: 'hands a due timer out once',
    backend(backend) {
      replace(backend, 'dueTimers', (due) => (now, page) => {
        const found = due(now, page)
        for (const { executionId, path } of found) backend.tables.timers.get(executionId)?.delete(path)
        return found
      })
    },
  },
  {
    name: 'does not arm an armed timer anew',
    backend(backend) {
      replace(backend, 'arm', (arm) => (id, path, fireAt) => {
        if (backend.tables.timers.get(id)?.get(path) === undefined) arm(id, path, fireAt)
      })
    },
  },
  {
    name: 'never cancels a timer',
    backend(backend) {
      replace(
        backend,
        'writeCompanions',
        (write) => (commit) =>
          write({ ...commit, timers: commit.timers.filter(({ action }) => action === 'schedule') }),
      )
    },
  },
  {
    name: 'fails to cancel a timer that is not armed',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => {
        for (const { action, path } of commit.timers) {
          if (action === 'cancel' && !backend.tables.timers.get(commit.id)?.has(path))
            throw new RangeError('no such row')
        }
        return write(commit)
      })
    },
  },
  {
    name: 'lets the first operation on a timer count',
    store: (store) => ({
      commit: (execution, changes) =>
        store.commit(execution, changes?.timers ? { ...changes, timers: changes.timers.toReversed() } : changes),
    }),
  },
  {
    name: 'arms the timers of each commit instead of those before',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => {
        backend.tables.timers.delete(commit.id)
        return write(commit)
      })
    },
  },
  {
    name: 'orders due timers by time alone, the youngest first',
    backend: order((a, b) => a.fireAt - b.fireAt || byTime(b, a)),
  },
  {
    name: 'orders due timers by UTF-16 units',
    backend: order((a, b) => a.fireAt - b.fireAt || (a.executionId + a.path < b.executionId + b.path ? -1 : 1)),
  },
  {
    name: 'orders due timers by the text of their time',
    backend: order((a, b) => compareBytes(`${a.fireAt}`, `${b.fireAt}`)),
  },
  {
    name: 'rounds times to milliseconds',
    backend: timers((path, fireAt) => [path, Math.round(fireAt * 1000) / 1000]),
  },
  {
    name: 'keeps times in single precision',
    backend: timers((path, fireAt) => [path, Math.fround(fireAt)]),
  },
  {
    name: 'compares paths without case',
    backend: timers((path, fireAt) => [path.toLowerCase(), fireAt]),
  },
  {
    name: 'has one timer per path in all',
    backend(backend) {
      replace(backend, 'arm', (arm) => (id, path, fireAt) => {
        for (const own of backend.tables.timers.values()) own.delete(path)
        arm(id, path, fireAt)
      })
    },
  },
  {
    name: 'deletes a timer whatever its time',
    backend(backend) {
      backend.deleteTimer = (id, path) => void backend.tables.timers.get(id)?.delete(path)
    },
  },
  {
    name: 'deletes a timer of about that time',
    backend(backend) {
      replace(backend, 'deleteTimer', (remove) => (id, path, fireAt) => {
        const armed = backend.tables.timers.get(id)?.get(path)
        remove(id, path, armed !== undefined && Math.abs(armed - fireAt) < 1e-6 ? armed : fireAt)
      })
    },
  },
  {
    name: 'does not delete timers',
    backend: (backend) => Object.assign(backend, { deleteTimer: () => {} }),
  },
  {
    name: 'fails to delete a timer that is not armed',
    backend(backend) {
      replace(backend, 'deleteTimer', (remove) => (id, path, fireAt) => {
        if (backend.tables.timers.get(id)?.get(path) === undefined) throw new RangeError('no such row')
        remove(id, path, fireAt)
      })
    },
  },
  {
    name: 'ignores the limit of due timers',
    store: (store) => ({ dueTimers: (now, page) => store.dueTimers(now, { ...page, limit: undefined }) }),
  },
  {
    name: 'goes on behind the time of a timer, not behind the timer',
    backend(backend) {
      replace(
        backend,
        'dueTimers',
        (due) =>
          (now, { after, limit }) =>
            due(now, { after: undefined, limit: Number.POSITIVE_INFINITY })
              .filter(({ fireAt }) => after === undefined || fireAt > after.fireAt)
              .slice(0, limit),
      )
    },
  },
  {
    name: 'holds fifty timers of an execution',
    backend(backend) {
      replace(backend, 'arm', (arm) => (id, path, fireAt) => {
        if ((backend.tables.timers.get(id)?.size ?? 0) < 50) arm(id, path, fireAt)
      })
    },
  },
]
