/**
 * A saga: a trip is a flight, a hotel and a car, each booked by a machine of its own. If one cannot be had, or the trip is
 * cancelled, those that were booked are given back, the last one first. Run it with `node src/saga.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { currentEffect, DurableRunner } from '@harel/xstate'
import { assign, enqueueActions, fromPromise, sendParent, sendTo, setup } from 'xstate'

export type Part = 'flight' | 'hotel' | 'car'
const PARTS: readonly Part[] = ['flight', 'hotel', 'car']

/** Books or gives back; the key lets the supplier see that it was asked before. */
export type Supplier = (what: 'book' | 'release', part: Part, key: string) => Promise<void>

const bookingMachine = (part: Part, supplier: Supplier) => {
  const ask = fromPromise(({ input }: { input: 'book' | 'release' }) =>
    supplier(input, part, currentEffect().idempotencyKey),
  )
  return setup({ types: { events: {} as { type: 'RELEASE' } }, actors: { ask } }).createMachine({
    id: part,
    initial: 'booking',
    states: {
      booking: { invoke: { src: 'ask', input: 'book', onDone: 'booked', onError: 'refused' } },
      booked: { entry: sendParent({ type: 'BOOKED', part }), on: { RELEASE: 'releasing' } },
      releasing: { invoke: { src: 'ask', input: 'release', onDone: 'released', onError: 'waiting' } },
      // What was booked has to be given back, however long that takes.
      waiting: { after: { 200: 'releasing' } },
      released: { type: 'final', entry: sendParent({ type: 'RELEASED' }) },
      refused: { type: 'final', entry: sendParent({ type: 'REFUSED' }) },
    },
  })
}

function tripMachine(supplier: Supplier) {
  const actors = {
    flight: bookingMachine('flight', supplier),
    hotel: bookingMachine('hotel', supplier),
    car: bookingMachine('car', supplier),
  }
  return setup({
    types: {
      context: {} as { booked: Part[] },
      events: {} as
        | { type: 'BOOKED'; part: Part }
        | { type: 'REFUSED' }
        | { type: 'RELEASED' }
        | { type: 'harel.cancel' },
    },
    actors,
    actions: {
      bookNext: enqueueActions(({ context, enqueue }) => {
        const next = PARTS[context.booked.length]
        if (next !== undefined) enqueue.spawnChild(next, { id: next })
      }),
      releaseLast: enqueueActions(({ context, enqueue }) => {
        const last = context.booked.at(-1)
        if (last !== undefined) enqueue(sendTo(last, { type: 'RELEASE' }))
      }),
    },
    guards: {
      allBooked: ({ context }) => context.booked.length === PARTS.length,
      noneBooked: ({ context }) => context.booked.length === 0,
    },
  }).createMachine({
    id: 'trip',
    context: { booked: [] },
    initial: 'booking',
    states: {
      booking: {
        entry: 'bookNext',
        always: { guard: 'allBooked', target: 'booked' },
        on: {
          BOOKED: {
            target: 'booking',
            reenter: true,
            actions: assign({ booked: ({ context, event }) => [...context.booked, event.part] }),
          },
          REFUSED: 'undoing',
        },
      },
      booked: { on: { 'harel.cancel': 'undoing' } },
      undoing: {
        entry: 'releaseLast',
        always: { guard: 'noneBooked', target: 'undone' },
        on: {
          RELEASED: {
            target: 'undoing',
            reenter: true,
            actions: assign({ booked: ({ context }) => context.booked.slice(0, -1) }),
          },
        },
      },
      undone: { type: 'final' },
    },
  })
}

/** Two trips: one for which there is no car, and one that is cancelled when all is booked. */
export async function demo(path: string, print: (line: string) => void): Promise<void> {
  const supplier: Supplier = async (what, part, key) => {
    print(`${key}: ${what} ${part}`)
    if (key === 'rome:car:0.car.booking') throw new Error('no car is left')
  }
  await using store = await AsyncSqliteStore.open(path)
  await using runner = new DurableRunner(store, { machines: [tripMachine(supplier)] })
  const isAt = async (id: string, path: string) => (await store.load(id))?.activePath === path
  for (const id of ['rome', 'oslo']) await runner.create('trip', { id })
  while (!(await isAt('rome', 'undone')) || !(await isAt('oslo', 'booked'))) await sleep(10)
  const { status } = await runner.cancel('oslo')
  print(`oslo is ${status}`)
  while (!(await isAt('oslo', 'undone'))) await sleep(10)
  for (const id of ['rome', 'oslo']) print(`${id}: ${(await store.load(id))?.status}`)
}

if (import.meta.main) await demo(':memory:', console.log)
