/** In the shapes of XState's examples that have machines within machines, and several things going on at once. */
import { assign, createMachine, enqueueActions, forwardTo, fromPromise, sendParent, setup } from 'xstate'
import { anyEvent, does, type Example, fails, HOUR, nextTick, ok } from './example.js'

/** Says what somebody types, once that comes. */
const typed = fromPromise(async ({ input, signal }: { input: { question: string }; signal: AbortSignal }) => {
  await nextTick(signal)
  return { answer: `an answer to ${input.question}` }
})

const questions = setup({
  types: { context: {} as { answer: string | undefined } },
  actors: { typed },
}).createMachine({
  id: 'questions',
  context: { answer: undefined },
  initial: 'first',
  states: {
    first: {
      invoke: {
        src: 'typed',
        input: { question: 'who' },
        onDone: { target: 'second', actions: assign({ answer: ({ event }) => event.output.answer }) },
      },
    },
    second: {
      invoke: { src: 'typed', input: ({ context }) => ({ question: context.answer ?? '' }), onDone: 'asked' },
    },
    asked: { type: 'final' },
  },
})

const subflow: Example = {
  of: 'workflow-async-subflow',
  machine: setup({ actors: { questions } }).createMachine({
    id: 'subflow',
    initial: 'asking',
    states: { asking: { invoke: { src: 'questions', onDone: 'over' } }, over: { type: 'final' } },
  }),
  script: ['tick', 'tick'],
}

type Readings = { tyres: number | null; oil: number | null; battery: number | null }
const reading = (value: number) => fromPromise(async () => value)

const checks = setup({
  types: { context: {} as Readings, output: {} as Readings },
  actors: { tyres: reading(1), oil: reading(2), battery: reading(3) },
}).createMachine({
  id: 'checks',
  context: { tyres: null, oil: null, battery: null },
  initial: 'checking',
  states: {
    checking: {
      invoke: [
        { src: 'tyres', onDone: { actions: assign({ tyres: ({ event }) => event.output }) } },
        { src: 'oil', onDone: { actions: assign({ oil: ({ event }) => event.output }) } },
        { src: 'battery', onDone: { actions: assign({ battery: ({ event }) => event.output }) } },
      ],
      always: { guard: ({ context }) => Object.values(context).every((value) => value !== null), target: 'checked' },
    },
    checked: { type: 'final' },
  },
  output: ({ context }) => context,
})

const drive: Example = {
  of: 'workflow-car-vitals',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { last: Readings | null; rounds: number } },
    actors: { checks },
    actions: { note: does('noted'), rest: does('off') },
  }).createMachine({
    id: 'drive',
    context: { last: null, rounds: 0 },
    initial: 'off',
    states: {
      off: { on: { ON: 'checking' } },
      checking: {
        invoke: {
          src: 'checks',
          onDone: {
            target: 'driving',
            actions: [
              'note',
              assign({ last: ({ event }) => event.output, rounds: ({ context }) => context.rounds + 1 }),
            ],
          },
        },
      },
      driving: { after: { [HOUR]: 'checking' } },
    },
    on: { OFF: { target: '.off', actions: 'rest' } },
  }),
  script: [{ type: 'ON' }, HOUR, { type: 'OFF' }, HOUR],
}

const college: Example = {
  of: 'workflow-finalize-college-app',
  machine: setup({
    types: { ...anyEvent.types, input: {} as { who: string }, context: {} as { who: string; got: string[] } },
    actors: { close: fromPromise(async ({ input }: { input: string }) => input) },
    guards: { hasAll: ({ context }) => ['FORM', 'SCORE', 'LETTER'].every((paper) => context.got.includes(paper)) },
    actions: { keep: assign({ got: ({ context, event }) => [...context.got, event.type] }) },
  }).createMachine({
    id: 'college',
    context: ({ input }) => ({ who: input.who, got: [] }),
    initial: 'collecting',
    states: {
      collecting: {
        on: { FORM: { actions: 'keep' }, SCORE: { actions: 'keep' }, LETTER: { actions: 'keep' } },
        always: { guard: 'hasAll', target: 'closing' },
      },
      closing: { invoke: { src: 'close', input: ({ context }) => context.who, onDone: 'closed' } },
      closed: { type: 'final' },
    },
  }),
  input: { who: 'Ada' },
  script: [{ type: 'SCORE' }, { type: 'FORM' }, { type: 'FORM' }, { type: 'LETTER' }],
}

const scanner: Example = {
  of: 'workflow-media-scanner',
  machine: setup({
    types: {
      ...anyEvent.types,
      input: {} as { root: string },
      context: {} as { root: string; found: string[]; refused: string[] },
    },
    actions: { complain: does('complained') },
    actors: {
      find: fromPromise(async ({ input: { root } }: { input: { root: string } }) => [`${root}/a`, `${root}/b`]),
      check: fromPromise(async ({ input }: { input: { found: string[] } }) => {
        if (input.found.length > 0) throw Object.assign(new Error('no rights'), { code: 'EACCES' })
        return { refused: [] as string[] }
      }),
    },
  }).createMachine({
    id: 'scanner',
    context: ({ input }) => ({ root: input.root, found: [], refused: [] }),
    initial: 'idle',
    states: {
      idle: { on: { SCAN: { target: 'finding' } } },
      finding: {
        invoke: {
          id: 'find',
          src: 'find',
          input: ({ context: { root } }) => ({ root }),
          onDone: [{ target: 'checking', actions: assign({ found: ({ event }) => event.output }) }],
          onError: [{ target: 'failed' }],
        },
      },
      checking: {
        invoke: {
          src: 'check',
          input: ({ context: { found } }) => ({ found }),
          onDone: 'idle',
          onError: [
            {
              target: 'failed',
              actions: assign(({ event }) => ({ refused: [String((event.error as { code?: unknown }).code)] })),
            },
          ],
        },
      },
      failed: { entry: { type: 'complain' }, on: { AGAIN: { target: 'idle' } } },
    },
  }),
  input: { root: '/media' },
  script: [{ type: 'SCAN' }, { type: 'AGAIN' }, { type: 'SCAN' }],
}

const patient: Example = {
  of: 'workflow-monitor-patient',
  machine: createMachine(
    {
      id: 'patient',
      types: { ...anyEvent.types, input: {} as { bed: number }, context: {} as { bed: number } },
      context: ({ input }) => input,
      initial: 'watched',
      states: {
        watched: {
          on: {
            'org.ward.hot': { actions: 'cool' },
            'org.ward.breath': { actions: 'call' },
            'org.ward.*': { actions: ['note', 'unheardOf'] },
          },
        },
      },
    },
    { actions: { cool: does('cooled'), call: does('called'), note: does('noted') } },
  ),
  input: { bed: 7 },
  script: [{ type: 'org.ward.hot' }, { type: 'org.ward.breath' }, { type: 'org.ward.pulse' }, { type: 'org.roof' }],
}

const branches: Example = {
  of: 'workflow-parallel, pattern-parallel-branches',
  machine: setup({
    actors: { short: ok, long: fromPromise(({ signal }) => nextTick(signal)) },
  }).createMachine({
    id: 'branches',
    initial: 'both',
    states: {
      both: {
        type: 'parallel',
        states: {
          one: {
            initial: 'runs',
            states: { runs: { invoke: { src: 'short', onDone: 'ended' } }, ended: { type: 'final' } },
          },
          two: {
            initial: 'runs',
            states: { runs: { invoke: { src: 'long', onDone: 'ended' } }, ended: { type: 'final' } },
          },
        },
        onDone: 'joined',
      },
      joined: { type: 'final' },
    },
  }),
  script: ['tick'],
}

const payment = setup({
  types: { ...anyEvent.types, context: {} as { amount: number | null; covered: boolean } },
  actors: { weigh: fromPromise(async ({ input }: { input: number }) => input < 1000), thank: ok, regret: ok },
}).createMachine({
  id: 'payment',
  context: { amount: null, covered: false },
  initial: 'pending',
  states: {
    pending: {
      on: { PAID: { target: 'weighing', actions: assign({ amount: ({ event }) => event.amount as number }) } },
    },
    weighing: {
      invoke: {
        src: 'weigh',
        input: ({ context }) => context.amount ?? 0,
        onDone: { target: 'deciding', actions: assign({ covered: ({ event }) => event.output }) },
      },
    },
    deciding: { always: [{ guard: ({ context }) => context.covered, target: 'thanking' }, { target: 'regretting' }] },
    thanking: { invoke: { src: 'thank', onDone: 'end' } },
    regretting: { invoke: { src: 'regret', onDone: 'end' } },
    end: { type: 'final', entry: sendParent(({ context }) => ({ type: 'WEIGHED', covered: context.covered })) },
  },
})

const reuse = (amount: number): Example => ({
  of: 'workflow-reusing-functions',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { covered: unknown } },
    actors: { payment },
  }).createMachine({
    id: 'reuse',
    context: { covered: null },
    initial: 'waiting',
    states: {
      waiting: {
        invoke: { id: 'pay', src: 'payment', onDone: 'over' },
        on: {
          PAID: { actions: forwardTo('pay') },
          WEIGHED: { actions: assign({ covered: ({ event }) => event.covered }) },
        },
      },
      over: { type: 'final' },
    },
    output: ({ context }) => ({ covered: context.covered }),
  }),
  script: [{ type: 'PAID', amount }],
})

const saga = (failing: 'reserve' | 'charge' | 'ship' | 'none'): Example => {
  const step = (name: string) => (failing === name ? fails(`${name} failed`) : ok)
  const fail = assign<{ failure: string | null }, { type: string; error: unknown }, undefined, never, never>({
    failure: ({ event }) => (event.error as Error).message,
  })
  return {
    of: 'saga-order-fulfillment',
    machine: setup({
      types: { context: {} as { failure: string | null } },
      actors: { reserve: step('reserve'), charge: step('charge'), ship: step('ship'), refund: ok, release: ok },
    }).createMachine({
      id: 'saga',
      context: { failure: null },
      initial: 'reserving',
      states: {
        reserving: { invoke: { src: 'reserve', onDone: 'charging', onError: { target: 'failed', actions: fail } } },
        charging: { invoke: { src: 'charge', onDone: 'shipping', onError: { target: 'releasing', actions: fail } } },
        shipping: { invoke: { src: 'ship', onDone: 'shipped', onError: { target: 'refunding', actions: fail } } },
        refunding: { invoke: { src: 'refund', onDone: 'releasing' } },
        releasing: {
          entry: enqueueActions(({ enqueue }) => enqueue(does('released'))),
          invoke: { src: 'release', onDone: 'failed' },
        },
        shipped: { type: 'final' },
        failed: { type: 'final', output: ({ context }) => ({ reason: context.failure }) },
      },
      output: ({ event }) => (event as { output?: unknown }).output,
    }),
    script: [],
  }
}

export const children: readonly Example[] = [
  subflow,
  drive,
  college,
  scanner,
  patient,
  branches,
  reuse(100),
  reuse(5000),
  saga('none'),
  saga('reserve'),
  saga('charge'),
  saga('ship'),
]
