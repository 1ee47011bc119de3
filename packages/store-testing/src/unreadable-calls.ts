import { everything, execution } from './fixtures.js'
import { type Case, child, event, timer, type Wrong, type WrongCalls } from './wrong-calls.js'

const THROWN = new Error('a getter')

/** The object with a getter that throws in place of a member. */
const throwing = (object: object, member: string): Wrong =>
  Object.defineProperty({ ...object }, member, {
    enumerable: true,
    get() {
      throw THROWN
    },
  })

/** What a draft of an immutable object is after its time: nothing can be asked of it, not even whether it is an array. */
function revoked(): Wrong {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const unreadable = (argument: string, call: Case['call'], cause?: unknown): Case => ({ argument, call, cause })

/** A commit of everything, with an execution or with changes of which something cannot be read. */
const onUnreadable = (argument: string, wrong: (ns: string) => Wrong, cause?: unknown): Case =>
  unreadable(
    argument,
    (store, ns) => {
      const [held, changes] = [execution(ns, 'x'), everything(ns, 'x')]
      return argument.startsWith('changes')
        ? store.commit(held, Object.defineProperties(changes, Object.getOwnPropertyDescriptors(wrong(ns))))
        : store.commit(Object.defineProperties(held, Object.getOwnPropertyDescriptors(wrong(ns))))
    },
    cause,
  )

export const unreadableCalls: readonly WrongCalls[] = [
  {
    title: 'an argument that throws when it is read is refused, its place is named and what it threw is the cause',
    cases: [
      ...['id', 'status', 'version', 'context', 'deferred', 'children', 'priority', 'createdAt'].map((field) =>
        onUnreadable(`execution.${field}`, () => throwing({}, field), THROWN),
      ),
      onUnreadable('execution.children.x', () => ({ children: throwing({}, 'x') }), THROWN),
      onUnreadable('execution.children.x.result', () => ({ children: { x: throwing(child, 'result') } }), THROWN),
      onUnreadable('execution.deferred[1].id', () => ({ deferred: [event, throwing(event, 'id')] }), THROWN),
      onUnreadable('changes.emits', () => throwing({}, 'emits'), THROWN),
      onUnreadable('changes.emits[0].event', () => ({ emits: [throwing({ targetId: null }, 'event')] }), THROWN),
      onUnreadable(
        'changes.emits[0].event.id',
        () => ({ emits: [{ targetId: null, event: throwing(event, 'id') }] }),
        THROWN,
      ),
      onUnreadable('changes.timers[0].path', () => ({ timers: [throwing({ action: 'cancel' }, 'path')] }), THROWN),
      onUnreadable('changes.spawns[0].childId', () => ({ spawns: [throwing({}, 'childId')] }), THROWN),
      ...(['listExecutions', 'pendingOutbox', 'pendingSpawns'] as const).map((method) =>
        unreadable(
          `${method === 'listExecutions' ? 'query' : 'page'}.limit`,
          (store) => store[method](throwing({}, 'limit')),
          THROWN,
        ),
      ),
      unreadable('page.after.path', (store) => store.dueTimers(1, { after: throwing(timer, 'path') }), THROWN),
      unreadable(
        'record.id',
        (store) => store.publishDefinition(throwing({ version: '1', definition: {} }, 'id')),
        THROWN,
      ),
    ],
  },
  {
    title: 'a revoked proxy is refused wherever it is given, and its place is named',
    cases: [
      unreadable('id', (store) => store.load(revoked())),
      unreadable('eventId', (store) => store.isProcessed('e', revoked())),
      unreadable('now', (store) => store.dueTimers(revoked())),
      unreadable('prefix', (store) => store.idsWithPrefix(revoked())),
      unreadable('seqs', (store) => store.ackOutbox(revoked())),
      unreadable('seqs[0]', (store) => store.ackSpawn([revoked()])),
      unreadable('page', (store) => store.pendingOutbox(revoked())),
      unreadable('page.after', (store) => store.dueTimers(1, { after: revoked() })),
      unreadable('query', (store) => store.listExecutions(revoked())),
      unreadable('query.status', (store) => store.listExecutions({ status: revoked() })),
      unreadable('record', (store) => store.publishDefinition(revoked())),
      unreadable('step', (store, ns) => store.appendTrace(`${ns}x`, revoked())),
      unreadable('execution', (store) => store.commit(revoked())),
      unreadable('changes', (store, ns) => store.commit(execution(ns, 'x'), revoked())),
      ...['id', 'context', 'deferred', 'children', 'error', 'createdAt'].map((field) =>
        onUnreadable(`execution.${field}`, () => ({ [field]: revoked() })),
      ),
      ...['emits', 'timers', 'spawns', 'trace', 'processedEventId'].map((field) =>
        onUnreadable(`changes.${field}`, () => ({ [field]: revoked() })),
      ),
      onUnreadable('changes.emits[0].event', () => ({ emits: [{ targetId: null, event: revoked() }] })),
    ],
  },
]
