/** Orders with children, timers, promises that fail, and a warehouse that all of them talk to; and their effects. */
import { appendFileSync } from 'node:fs'
import { currentEffect, execution } from '@harel/xstate'
import { type AnyActorRef, assign, enqueueActions, fromPromise, sendTo, setup } from 'xstate'

export interface OrderInput {
  id: string
  warehouse: string
  /** How often the bank refuses the card before it accepts it. */
  refusals: number
}

/** How the machines act upon the world outside: each line in the file is one call of a service. */
export function machinesWritingTo(file: string) {
  const effect = (kind: string, id: string): void =>
    appendFileSync(file, `${JSON.stringify({ kind, id, key: currentEffect().idempotencyKey })}\n`)

  const shipment = setup({
    types: { input: {} as { order: string }, context: {} as { order: string } },
    actions: { print: ({ context }) => effect('label', context.order) },
  }).createMachine({
    id: 'shipment',
    context: ({ input }) => input,
    initial: 'packed',
    states: {
      packed: { entry: 'print', after: { 40: 'onTheWay' } },
      onTheWay: { after: { 60: 'arrived' } },
      arrived: { type: 'final' },
    },
    output: ({ context }) => ({ parcel: `parcel-of-${context.order}` }),
  })

  const charge = fromPromise(async ({ input }: { input: { order: string; refused: boolean } }) => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    effect('charge', input.order)
    if (input.refused) throw new Error('the bank has refused the card')
    return { receipt: `receipt-of-${input.order}` }
  })

  const order = setup({
    types: {
      input: {} as OrderInput,
      context: {} as OrderInput & { charges: number; receipt: string | null; parcel: string | null },
      events: {} as { type: 'PACKED' },
    },
    actors: { shipment, charge },
    actions: {
      confirm: ({ context }) => effect('confirm', context.id),
      thank: ({ context }) => effect('thank', context.id),
    },
  }).createMachine({
    id: 'order',
    context: ({ input }) => ({ ...input, charges: 0, receipt: null, parcel: null }),
    initial: 'fulfilling',
    states: {
      fulfilling: {
        type: 'parallel',
        entry: 'confirm',
        states: {
          payment: {
            initial: 'charging',
            states: {
              charging: {
                entry: assign({ charges: ({ context }) => context.charges + 1 }),
                invoke: {
                  src: 'charge',
                  input: ({ context }) => ({ order: context.id, refused: context.charges <= context.refusals }),
                  onDone: { target: 'paid', actions: assign({ receipt: ({ event }) => event.output.receipt }) },
                  onError: 'refused',
                },
              },
              refused: { after: { 30: 'charging' } },
              paid: { type: 'final' },
            },
          },
          packing: {
            initial: 'waiting',
            states: {
              waiting: { after: { 30: 'asking' } },
              asking: {
                entry: sendTo(
                  ({ context }) => execution(context.warehouse),
                  ({ self }) => ({ type: 'PACK', from: self }),
                ),
                on: { PACKED: 'packed' },
              },
              packed: { type: 'final' },
            },
          },
        },
        onDone: 'shipping',
      },
      shipping: {
        invoke: {
          src: 'shipment',
          id: 'shipment',
          input: ({ context }) => ({ order: context.id }),
          onDone: {
            target: 'delivered',
            actions: [assign({ parcel: ({ event }) => (event.output as { parcel: string }).parcel }), 'thank'],
          },
        },
      },
      delivered: { type: 'final' },
    },
  })

  const warehouse = setup({
    types: { context: {} as { packed: number }, events: {} as { type: 'PACK'; from: AnyActorRef } },
  }).createMachine({
    id: 'warehouse',
    context: { packed: 0 },
    on: {
      PACK: {
        actions: [
          assign({ packed: ({ context }) => context.packed + 1 }),
          sendTo(({ event }) => event.from, { type: 'PACKED' }),
        ],
      },
    },
  })

  const shop = setup({
    types: { input: {} as { orders: OrderInput[] }, context: {} as { open: number } },
    actors: { order },
  }).createMachine({
    id: 'shop',
    context: ({ input }) => ({ open: input.orders.length }),
    initial: 'selling',
    states: {
      selling: {
        entry: enqueueActions(({ enqueue, event }) => {
          const { orders } = (event as unknown as { input: { orders: OrderInput[] } }).input
          for (const input of orders) enqueue.spawnChild('order', { id: input.id, input })
        }),
        on: { 'xstate.done.actor.*': { actions: assign({ open: ({ context }) => context.open - 1 }) } },
        always: { guard: ({ context }) => context.open === 0, target: 'soldOut' },
      },
      soldOut: { type: 'final' },
    },
  })

  return [shop, order, warehouse] as const
}
