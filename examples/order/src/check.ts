/** Looks into the store for anything lost, repeated or left over. */
import { type Execution, type ExecutionStore, executions, type TraceStep } from '@harel/store-base'
import type { OrderContext, OrderInput, WarehouseContext } from './machine.ts'
import { expectedCommits, expectedEvents, isDeliverable, STOCK, shipmentOf, warehouseIds } from './workload.ts'

export interface Finding {
  claim: string
  /** What speaks against it. Nothing: the claim holds. */
  objections: string[]
}

/** An execution with its whole trace. */
export interface History {
  execution: Execution
  trace: TraceStep[]
}

/** By the id of the execution. */
export type Histories = ReadonlyMap<string, History>

export async function readHistories(store: ExecutionStore): Promise<Histories> {
  const histories = new Map<string, History>()
  for await (const { id, definitionId } of executions(store, { limit: 1000 })) {
    // The runner's own record of its sweeps.
    if (definitionId.startsWith('harel.')) continue
    const [execution, trace] = await Promise.all([store.load(id), store.readTrace(id)])
    if (execution !== undefined) histories.set(id, { execution, trace })
  }
  return histories
}

export async function check(
  store: ExecutionStore,
  histories: Histories,
  orders: readonly OrderInput[],
): Promise<Finding[]> {
  const delivered = orders.filter(isDeliverable)
  const warehouses = warehouseIds(orders.length)
  const served = Map.groupBy(delivered, ({ warehouse }) => warehouse)
  const expected = expectedEvents(orders)
  return [
    {
      claim: `${orders.length} orders are done: ${delivered.length} delivered, ${orders.length - delivered.length} refused`,
      objections: orders.flatMap((order) => wrongEnd(order, histories)),
    },
    {
      claim: `${delivered.length} parcels were sent, one for each delivered order`,
      objections: [
        ...delivered.flatMap(({ id }) => wrongParcel(id, histories)),
        ...[...histories.keys()].filter((id) => !expected.has(id)).map((id) => `${id} should not exist`),
      ],
    },
    {
      claim: 'no event was lost and none was handled twice',
      objections: [...expected].flatMap(([id, kinds]) => wrongEvents(id, kinds, histories)),
    },
    {
      claim: `the books of ${warehouses.length} warehouses agree with the orders, to the piece`,
      objections: warehouses.flatMap((id) => wrongBooks(id, served.get(id) ?? [], histories)),
    },
    {
      claim: `${expectedCommits(orders)} commits were to be made and were made: one version and one step in a trace for each`,
      objections: [...histories.values()].flatMap(({ execution: { id, version }, trace }) => {
        const dense = trace.every(({ index }, place) => index === place)
        const right = dense && trace.length === version && version === expected.get(id)?.length
        return right ? [] : `${id} is at version ${version}, with ${trace.length} steps in its trace`
      }),
    },
    {
      claim: 'nothing is left over: no event, no child to be started, no timer',
      objections: await leftovers(store),
    },
  ]
}

function wrongEnd(order: OrderInput, histories: Histories): string[] {
  const { status, outcome } = histories.get(order.id)?.execution ?? {}
  const wanted = isDeliverable(order) ? 'delivered' : 'refused'
  return status === 'DONE' && outcome === wanted ? [] : [`${order.id} is ${status}, ${outcome}; not ${wanted}`]
}

function wrongParcel(order: string, histories: Histories): string[] {
  const { status, outcome, parentId } = histories.get(shipmentOf(order))?.execution ?? {}
  const parcel = contextOf<OrderContext>(order, histories)?.parcel
  const right = status === 'DONE' && outcome === 'arrived' && parentId === order && parcel === `parcel-of-${order}`
  return right ? [] : [`${shipmentOf(order)} is ${status}, ${outcome}; the order has received ${parcel}`]
}

function wrongEvents(id: string, wanted: readonly string[], histories: Histories): string[] {
  const trace = histories.get(id)?.trace ?? []
  if (new Set(trace.map(({ event_id }) => event_id)).size < trace.length) return [`${id} has handled one event twice`]
  const missing = [...wanted]
  const surplus = trace
    .map(({ event_kind }) => String(event_kind))
    .filter((kind) => {
      const place = missing.indexOf(kind)
      if (place >= 0) missing.splice(place, 1)
      return place < 0
    })
  return [
    ...surplus.map((kind) => `${id} has handled ${kind} once too often`),
    ...missing.map((kind) => `${id} has not handled ${kind}`),
  ]
}

function wrongBooks(id: string, served: readonly OrderInput[], histories: Histories): string[] {
  const taken = served.reduce((sum, { quantity }) => sum + quantity, 0)
  const wanted: WarehouseContext = { stock: STOCK - taken, reserved: served.length, packed: served.length }
  const { stock, reserved, packed } = contextOf<WarehouseContext>(id, histories) ?? {}
  const right = stock === wanted.stock && reserved === wanted.reserved && packed === wanted.packed
  return right ? [] : [`${id} has ${JSON.stringify({ stock, reserved, packed })}, not ${JSON.stringify(wanted)}`]
}

/** Later than any timer of this example, in epoch seconds. */
const LATER = Date.now() / 1000 + 1e6

const leftovers = async (store: ExecutionStore): Promise<string[]> => [
  ...(await store.pendingOutbox()).map(({ seq, event }) => `event ${seq}, ${event.kind}, was not delivered`),
  ...(await store.pendingSpawns()).map(({ childId }) => `${childId} was not started`),
  ...(await store.dueTimers(LATER)).map(({ executionId, path }) => `${executionId} still waits for ${path}`),
]

const contextOf = <Context>(id: string, histories: Histories): Context | undefined =>
  (histories.get(id)?.execution.context.xstate as { context: Context } | undefined)?.context
