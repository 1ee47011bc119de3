import type { OrderInput } from './machine.ts'

/** What the orders are about: made of their number alone, so that everybody knows how each of them has to end. */

const ORDERS_PER_WAREHOUSE = 20
/** Pieces in a warehouse at the beginning; more than its orders take. */
export const STOCK = 100

const numbered = (name: string, n: number) => `${name}-${String(n).padStart(5, '0')}`

export const warehouseIds = (orders: number): string[] =>
  Array.from({ length: Math.ceil(orders / ORDERS_PER_WAREHOUSE) }, (_, n) => numbered('warehouse', n + 1))

/** Every seventh has its card refused once or twice; every twentieth wants more than a warehouse has. */
export function orderInputs(orders: number): OrderInput[] {
  const warehouses = warehouseIds(orders)
  return Array.from({ length: orders }, (_, n) => ({
    id: numbered('order', n + 1),
    warehouse: warehouses[n % warehouses.length] ?? '',
    quantity: n % 20 === 19 ? STOCK + 1 : 1 + (n % 3),
    refusals: n % 7 === 3 ? 1 + (n % 2) : 0,
    bankTime: 200 + ((n * 37) % 400),
    carrierTime: 300 + ((n * 53) % 600),
  }))
}

export const isDeliverable = ({ quantity }: OrderInput): boolean => quantity <= STOCK

export const shipmentOf = (order: string): string => `${order}:shipment`

/**
 * For each execution that there has to be in the end, the kinds of the events that it has to handle, each exactly once;
 * some of them in one order or another.
 */
export function expectedEvents(orders: readonly OrderInput[]): Map<string, string[]> {
  const expected = new Map(warehouseIds(orders.length).map((id) => [id, ['xstate.init']]))
  for (const order of orders) {
    const deliverable = isDeliverable(order)
    expected.set(order.id, deliverable ? deliveredEvents(order) : ['xstate.init', 'SOLD_OUT'])
    expected.get(order.warehouse)?.push('RESERVE', ...(deliverable ? ['PACK'] : []))
    if (deliverable) expected.set(shipmentOf(order.id), ['xstate.init', 'xstate.after.carrier.shipment.onTheWay'])
  }
  return expected
}

const deliveredEvents = ({ refusals }: OrderInput): string[] => [
  'xstate.init',
  'RESERVED',
  'PACKED',
  ...Array.from({ length: refusals + 1 }, () => 'xstate.after.bank.order.fulfilling.payment.charging'),
  ...Array.from({ length: refusals }, () => 'xstate.after.retry.order.fulfilling.payment.declined'),
  'xstate.done.actor.shipment',
]

/** Of all executions, until everything is done. */
export const expectedCommits = (orders: readonly OrderInput[]): number =>
  [...expectedEvents(orders).values()].reduce((sum, { length }) => sum + length, 0)
