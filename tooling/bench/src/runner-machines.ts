/** The machines of the runner's workloads, and the executions that take turns. */
import { assign, emit, initialTransition, type StateValue, setup } from 'xstate'

/** Enough that all concurrent events are for different executions. */
const EXECUTIONS = 512

export interface Stored {
  value: StateValue
  context: { n: number }
}

const count = assign<{ n: number }, { type: 'NEXT' }, undefined, { type: 'NEXT' }, never>({
  n: ({ context }) => context.n + 1,
})

/** Goes from one state to the other and back, and counts. */
export const counter = setup({ types: { context: {} as { n: number }, events: {} as { type: 'NEXT' } } }).createMachine(
  {
    id: 'counter',
    context: { n: 0 },
    initial: 'a',
    states: {
      a: { on: { NEXT: { target: 'b', actions: count } } },
      b: { on: { NEXT: { target: 'a', actions: count } } },
    },
  },
)

const child = setup({}).createMachine({ id: 'child', initial: 'done', states: { done: { type: 'final' } }, output: 1 })

/** Starts a child and ends when it has ended: three commits, two deliveries. */
export const parent = setup({ types: { emitted: {} as { type: 'ended' } }, actors: { child } }).createMachine({
  id: 'parent',
  initial: 'waiting',
  states: {
    waiting: { invoke: { src: 'child', id: 'child', onDone: 'ended' } },
    ended: { type: 'final', entry: emit({ type: 'ended' }) },
  },
})

/** Waits for as long as it is told, and ends. */
export const sleeper = setup({
  types: { context: {} as { milliseconds: number }, input: {} as { milliseconds: number } },
  delays: { given: ({ context }) => context.milliseconds },
}).createMachine({
  id: 'sleeper',
  context: ({ input }) => input,
  initial: 'waiting',
  states: { waiting: { after: { given: 'done' } }, done: { type: 'final' } },
})

export const first = initialTransition(counter)[0]

/** The ids of executions, each in its turn. */
export function inTurn(prefix: string): () => string {
  let next = 0
  return () => `${prefix}-${next++ % EXECUTIONS}`
}

export const each = (prefix: string, make: (id: string) => Promise<unknown>) =>
  Promise.all(Array.from({ length: EXECUTIONS }, (_, n) => make(`${prefix}-${n}`)))
