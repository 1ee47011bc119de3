/** The statecharts: an order, the warehouse it talks to, and the shipment it starts. Nothing in here knows of a store. */
import { execution } from '@harel/xstate'
import { assign, sendTo, setup } from 'xstate'

export type OrderInput = {
  id: string
  warehouse: string
  quantity: number
  /** How often the bank refuses the card before it accepts it. */
  refusals: number
  /** How long the bank and the carrier take, in milliseconds. */
  bankTime: number
  carrierTime: number
}

export type OrderContext = OrderInput & { charges: number; parcel: string | null }

type OrderEvent = { type: 'RESERVED' } | { type: 'SOLD_OUT' } | { type: 'PACKED' }

const shipment = setup({
  types: {
    input: {} as { order: string; carrierTime: number },
    context: {} as { order: string; carrierTime: number },
    output: {} as { parcel: string },
  },
  delays: { carrier: ({ context }) => context.carrierTime },
}).createMachine({
  id: 'shipment',
  context: ({ input }) => input,
  initial: 'onTheWay',
  states: {
    onTheWay: { after: { carrier: 'arrived' } },
    arrived: { type: 'final' },
  },
  output: ({ context }) => ({ parcel: `parcel-of-${context.order}` }),
})

const order = setup({
  types: { input: {} as OrderInput, context: {} as OrderContext, events: {} as OrderEvent },
  actors: { shipment },
  guards: { cardAccepted: ({ context }) => context.charges >= context.refusals },
  delays: { patience: 3_600_000, bank: ({ context }) => context.bankTime, retry: 200 },
}).createMachine({
  id: 'order',
  context: ({ input }) => ({ ...input, charges: 0, parcel: null }),
  initial: 'reserving',
  states: {
    reserving: {
      entry: sendTo(
        ({ context }) => execution(context.warehouse),
        ({ context: { id, quantity } }) => ({ type: 'RESERVE', order: id, quantity }),
      ),
      on: { RESERVED: 'fulfilling', SOLD_OUT: 'refused' },
      after: { patience: 'refused' },
    },
    fulfilling: {
      type: 'parallel',
      states: {
        payment: {
          initial: 'charging',
          states: {
            charging: {
              after: {
                bank: [
                  { guard: 'cardAccepted', target: 'paid' },
                  { target: 'declined', actions: assign({ charges: ({ context }) => context.charges + 1 }) },
                ],
              },
            },
            declined: { after: { retry: 'charging' } },
            paid: { type: 'final' },
          },
        },
        packing: {
          initial: 'waiting',
          states: {
            waiting: {
              entry: sendTo(
                ({ context }) => execution(context.warehouse),
                ({ context }) => ({ type: 'PACK', order: context.id }),
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
        id: 'shipment',
        src: 'shipment',
        input: ({ context: { id, carrierTime } }) => ({ order: id, carrierTime }),
        onDone: { target: 'delivered', actions: assign({ parcel: ({ event }) => event.output.parcel }) },
      },
    },
    delivered: { type: 'final' },
    refused: { type: 'final' },
  },
})

export type WarehouseContext = { stock: number; reserved: number; packed: number }

type WarehouseEvent = { type: 'RESERVE'; order: string; quantity: number } | { type: 'PACK'; order: string }

const warehouse = setup({
  types: { input: {} as { stock: number }, context: {} as WarehouseContext, events: {} as WarehouseEvent },
  guards: { inStock: ({ context }, quantity: number) => quantity <= context.stock },
}).createMachine({
  id: 'warehouse',
  context: ({ input }) => ({ ...input, reserved: 0, packed: 0 }),
  initial: 'open',
  states: {
    open: {
      on: {
        RESERVE: [
          {
            guard: { type: 'inStock', params: ({ event }) => event.quantity },
            actions: [
              assign({
                stock: ({ context, event }) => context.stock - event.quantity,
                reserved: ({ context }) => context.reserved + 1,
              }),
              sendTo(({ event }) => execution(event.order), { type: 'RESERVED' }),
            ],
          },
          { actions: sendTo(({ event }) => execution(event.order), { type: 'SOLD_OUT' }) },
        ],
        PACK: {
          actions: [
            assign({ packed: ({ context }) => context.packed + 1 }),
            sendTo(({ event }) => execution(event.order), { type: 'PACKED' }),
          ],
        },
      },
    },
  },
})

export const machines = [order, shipment, warehouse] as const
