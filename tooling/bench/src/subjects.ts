/** The executions and events of the measurements. */
import { type Emit, type Execution, encodeExecution, type HarelEvent, newExecution } from '@harel/store-base'

/** The stored form of an execution, as somebody without a codec would hold it. */
export interface Wire {
  version: number
  id: string
  definition_id: string
  status: string
  outcome: string | null
  active_path: string | null
  parent_id: string | null
  finished_at: number | null
  context: object
}

/** An execution in both forms, which share their context, so that it can be committed either way. */
export interface Subject {
  readonly execution: Execution
  readonly wire: Wire
}

/** The size of a payload, where nothing else is said. */
export const BYTES = 600

const TOKEN = '01234567-89ab-4cde-8f01-23456789abcd'

/** An execution with a payload of so many bytes, last stored at `version`. */
export function subject(fields: Partial<Execution> & { id: string }, bytes: number, version = 0): Subject {
  const execution = newExecution({
    definitionId: 'order',
    definitionFqn: 'shop.order',
    rootPath: 'Order',
    status: 'RUNNING',
    activePath: 'Order.open.waiting',
    createdAt: 1_767_225_600.25,
    updatedAt: 1_767_225_600.5,
    context: { n: 100_000, note: '' },
    version,
    ...fields,
  })
  const { length } = encodeExecution(execution, 1, TOKEN)
  if ('note' in execution.context) execution.context.note = 'x'.repeat(Math.max(0, bytes - length))
  return { execution, wire: wireOf(execution) }
}

/** Changes the state, as a step of its machine would. */
export function advance({ execution: { context } }: Subject): void {
  context.n = Number(context.n) + 1
}

/** Lends each subject in turn, with its state changed, to one at a time: a slow commit may outlast many others. */
export function turns(subjects: readonly Subject[]): <T>(use: (subject: Subject) => T) => T {
  const idle = [...subjects]
  return (use) => {
    const subject = idle.shift()
    if (subject === undefined) throw new Error('more are under way at once than there are executions')
    advance(subject)
    const used = use(subject)
    const giveBack = () => void idle.push(subject)
    if (used instanceof Promise) used.then(giveBack, giveBack)
    else giveBack()
    return used
  }
}

let lastEvent = 0

/** Unique, and as long as the ids that `newId` makes. */
export const nextEventId = (): string => (++lastEvent).toString(16).padStart(32, '0')

const CREATED = '2026-01-01T00:00:00.250000Z'
const data = { order: 'A-1000', items: 3 }

const emitTo = (targetId: string, id: string): Emit => ({
  targetId,
  event: { id, kind: 'Shipped', createdTime: CREATED, receivedTime: null, data } satisfies HarelEvent,
})

/** The arguments of a commit with one event and a dedupe id. */
export const commitOf = ({ execution }: Subject, eventId: string) =>
  [execution, { emits: [emitTo(execution.id, eventId)], processedEventId: eventId }] as const

/** The stored form of the event of `emitTo`. */
export const wireEvent = (id: string) => ({ id, kind: 'Shipped', created_time: CREATED, received_time: null, data })

/** Steps of a trace that are kept, where nothing else is said. */
export const KEPT = 200

/** Fire in a hundred years: no sweep finds them. */
const TIMERS = [
  { action: 'schedule', path: 'Order.open', fireAt: 4_900_000_000 },
  { action: 'schedule', path: 'Order.open.waiting', fireAt: 4_900_000_060 },
] as const

const STEP = { cause: 'event', kind: 'Shipped', from: 'Order.open.paid', to: 'Order.open.waiting', actions: ['ship'] }
const SPAWN = { rootPath: 'Payment', context: { order: 'A-1000', amount: 19.99 } }

/** The arguments of a commit with something of everything: two events, a dedupe id, two timers, a child, a trace step. */
export const fullOf = ({ execution }: Subject, eventId: string) =>
  [
    execution,
    {
      emits: [emitTo(execution.id, eventId), emitTo(execution.id, nextEventId())],
      processedEventId: eventId,
      timers: TIMERS,
      spawns: [{ childId: eventId, ...SPAWN }],
      trace: STEP,
    },
  ] as const

/** The stored forms of what `fullOf` adds to an execution. */
export const wireFull = (eventId: string) => ({
  events: [JSON.stringify(wireEvent(eventId)), JSON.stringify(wireEvent(nextEventId()))] as const,
  timers: TIMERS,
  spawn: { childId: eventId, rootPath: SPAWN.rootPath, context: JSON.stringify(SPAWN.context) },
  trace: JSON.stringify(STEP),
})

/** The arguments of a commit that fills the outbox again, with so many events. */
export const refillOf = ({ execution }: Subject, events: number) =>
  [execution, { emits: Array.from({ length: events }, () => emitTo(execution.id, nextEventId())) }] as const

/** An execution with a payload of about 2 kB that has something of everything. */
export function largeSubject(): Subject {
  const address = { name: 'A. Customer', street: '12 Long Street', city: 'Springfield', zip: '12345', country: 'US' }
  const item = (n: number) => ({ sku: `SKU-${1000 + n}`, name: `Article number ${n}`, quantity: n, price: 19.99 + n })
  return subject(
    {
      id: '00112233445566778899aabbccddeeff',
      history: { 'Order.open': 'Order.open.waiting', 'Order.payment': 'Order.payment.authorised' },
      context: {
        n: 1,
        customer: { id: 4711, email: 'customer@shop.example', vip: false, billing: address, shipping: address },
        items: Array.from({ length: 8 }, (_, n) => item(n)),
        totals: { net: 187.92, tax: 35.7, gross: 223.62, currency: 'EUR' },
        tags: ['web', 'express', 'gift'],
        note: '',
      },
      deferred: [emitTo('', 'ffeeddccbbaa99887766554433221100').event],
      children: {
        '8899aabbccddeeff0011223344556677': {
          rootPath: 'Payment',
          finished: false,
          outcome: null,
          result: {},
          submachine: false,
          key: 'payment',
        },
      },
      invokeSeq: { 'Order.open': 2 },
    },
    2000,
    7,
  )
}

function wireOf(execution: Execution): Wire {
  const wire = JSON.parse(encodeExecution(execution, execution.version, TOKEN)) as Wire
  wire.context = execution.context
  return wire
}
