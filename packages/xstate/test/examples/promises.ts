/** In the shapes of XState's examples that call one service after another. */
import { assign, fromCallback, fromPromise, setup } from 'xstate'
import { anyEvent, type Example, fails, ok, onTick } from './example.js'

const hello: Example = {
  of: 'workflow-hello',
  machine: setup({}).createMachine({
    id: 'hello',
    initial: 'Said at once',
    states: { 'Said at once': { type: 'final', output: { text: 'hi' } } },
    output: ({ event }) => (event as { output?: unknown }).output,
  }),
  script: [],
}

const greeting: Example = {
  of: 'workflow-greeting',
  machine: setup({
    types: { input: {} as { who: string }, context: {} as { who: string; line: string | null } },
    actors: { compose: fromPromise(async ({ input }: { input: string }) => ({ line: `Good day, ${input}` })) },
  }).createMachine({
    id: 'greeting',
    context: ({ input }) => ({ who: input.who, line: null }),
    initial: 'composing',
    states: {
      composing: {
        invoke: {
          src: 'compose',
          input: ({ context }) => context.who,
          onDone: { target: 'composed', actions: assign({ line: ({ event }) => event.output.line }) },
        },
      },
      composed: { type: 'final' },
    },
    output: ({ context }) => ({ line: context.line }),
  }),
  input: { who: 'Ada' },
  script: [],
}

const answer: Example = {
  of: 'workflow-event-greeting',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { line?: string } },
    actors: { compose: fromPromise(async ({ input }: { input: string }) => ({ line: `Good day, ${input}` })) },
  }).createMachine({
    id: 'answer',
    context: {},
    initial: 'waiting',
    states: {
      waiting: { on: { MET: 'composing' } },
      composing: {
        invoke: {
          src: 'compose',
          input: ({ event }) => (event as { person?: { name: string } }).person?.name ?? '',
          onDone: { target: 'composed', actions: assign(({ event }) => ({ line: event.output.line })) },
        },
      },
      composed: { type: 'final', output: ({ context }) => ({ line: context.line }) },
    },
    output: ({ event }) => (event as { output?: unknown }).output,
  }),
  script: [{ type: 'MET', person: { name: 'Ada' } }],
}

const mail: Example = {
  of: 'workflow-async-function',
  machine: setup({
    types: { input: {} as { to: string }, context: {} as { to: string } },
    actors: { post: fromPromise(async ({ input }: { input: { to: string } }) => input.to) },
  }).createMachine({
    id: 'mail',
    context: ({ input }) => input,
    initial: 'To be posted',
    states: {
      'To be posted': { invoke: { src: 'post', input: ({ context }) => context, onDone: 'Is posted' } },
      'Is posted': { type: 'final' },
    },
  }),
  input: { to: 'ada@example.org' },
  script: [],
}

const sums: Example = {
  of: 'workflow-math-problem, workflow-send-cloudevent',
  machine: setup({
    types: { input: {} as { terms: number[] }, context: {} as { terms: number[]; squares: number[] | undefined } },
    actors: {
      squareAll: fromPromise(({ input }: { input: number[] }) =>
        Promise.all(input.map(async (n) => ({ n, square: n * n }))),
      ),
    },
  }).createMachine({
    id: 'sums',
    context: ({ input }) => ({ terms: input.terms, squares: undefined }),
    initial: 'solving',
    states: {
      solving: {
        invoke: {
          src: 'squareAll',
          input: ({ context }) => context.terms,
          onDone: {
            target: 'solved',
            actions: assign({ squares: ({ event }) => event.output.map(({ square }) => square) }),
          },
        },
      },
      solved: { type: 'final', output: ({ context }) => ({ squares: context.squares }) },
    },
    output: ({ event }) => (event as { output?: unknown }).output,
  }),
  input: { terms: [1, 2, 3] },
  script: [],
}

const applicant = (age: number, isTaken: boolean): Example => ({
  of: 'workflow-applicant-request',
  machine: setup({
    types: { ...anyEvent.types, input: {} as { age: number }, context: {} as { age: number } },
    actors: {
      take: fromPromise(async () => {
        if (!isTaken) throw new Error('full')
      }),
      decline: ok,
    },
    guards: { isAdult: ({ context }) => context.age >= 18 },
  }).createMachine({
    id: 'applicant',
    context: ({ input }) => input,
    initial: 'filling',
    states: {
      filling: { on: { SUBMIT: [{ guard: 'isAdult', target: 'taking' }, { target: 'declining' }] } },
      taking: { invoke: { src: 'take', onDone: 'end', onError: 'declining' } },
      declining: { invoke: { src: 'decline', onDone: 'end' } },
      end: { type: 'final' },
    },
  }),
  input: { age },
  script: [{ type: 'SUBMIT' }],
})

const visit: Example = {
  of: 'workflow-event-based-service',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { pet: string; booked: unknown } },
    actors: {
      book: fromPromise(async ({ input }: { input: string }) => ({ pet: input, at: '2031-05-01T08:00:00Z' })),
    },
  }).createMachine({
    id: 'visit',
    context: { pet: '', booked: null },
    initial: 'idle',
    states: {
      idle: { on: { ASK: { target: 'booking', actions: assign({ pet: ({ event }) => event.pet as string }) } } },
      booking: {
        invoke: {
          src: 'book',
          input: ({ context }) => context.pet,
          onDone: { target: 'idle', actions: assign({ booked: ({ event }) => event.output }) },
        },
      },
    },
  }),
  script: [
    { type: 'ASK', pet: 'Rex' },
    { type: 'ASK', pet: 'Tom' },
  ],
}

const inbox: Example = {
  of: 'workflow-check-inbox, workflow-slack-linear',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { mails: string[] | null; told: number } },
    actors: {
      remind: fromCallback<{ type: string }, { as: string }>(({ input, sendBack }) =>
        onTick(() => sendBack({ type: input.as })),
      ),
      fetchMails: fromPromise(async () => ['urgent', 'later']),
      tell: fromPromise(({ input }: { input: string[] }) => Promise.all(input.map(async (mail) => mail.length))),
    },
  }).createMachine({
    id: 'inbox',
    context: { mails: null, told: 0 },
    invoke: { src: 'remind', input: { as: 'DUE' } },
    initial: 'idle',
    states: {
      idle: { on: { DUE: 'fetching' } },
      fetching: {
        invoke: {
          src: 'fetchMails',
          onDone: { target: 'telling', actions: assign({ mails: ({ event }) => event.output }) },
        },
      },
      telling: {
        invoke: {
          src: 'tell',
          input: ({ context }) => context.mails ?? [],
          onDone: {
            target: 'idle',
            actions: assign({ told: ({ context, event }) => context.told + event.output.length }),
          },
        },
      },
    },
  }),
  script: ['tick', 'tick'],
}

const onboarding = (failing: string): Example => ({
  of: 'workflow-new-patient-onboarding',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { who: { name: string } | null } },
    actors: {
      keep: fromPromise(async ({ input }: { input: { name: string } | null }) => input),
      assignDoctor: failing === 'doctor' ? fails('none') : ok,
      fix: ok,
    },
  }).createMachine({
    id: 'onboarding',
    context: { who: null },
    initial: 'idle',
    states: {
      idle: {
        on: { NEW: { target: 'taking', actions: assign({ who: ({ event }) => ({ name: event.name as string }) }) } },
      },
      taking: {
        initial: 'keeping',
        states: {
          keeping: {
            invoke: { src: 'keep', input: ({ context }) => context.who, onDone: 'assigning', onError: '#Over' },
          },
          assigning: { invoke: { src: 'assignDoctor', onDone: 'fixing', onError: '#Over' } },
          fixing: { invoke: { src: 'fix', onDone: 'taken', onError: '#Over' } },
          taken: { type: 'final' },
        },
        onDone: { target: 'over', actions: assign({ who: null }) },
      },
      over: { id: 'Over', type: 'final' },
    },
  }),
  script: [{ type: 'NEW', name: 'Ada' }],
})

const provision = (order: { id: string; item: string }): Example => ({
  of: 'workflow-provision-orders',
  machine: setup({
    types: { input: {} as { order: typeof order }, context: {} as { order: typeof order } },
    actors: {
      provision: fromPromise(async ({ input }: { input: typeof order }) => {
        if (input.id === '') throw new Error('no id')
        if (input.item === '') throw new Error('no item')
        if (input.item === 'bomb') throw new RangeError('no')
        return input
      }),
      apply: ok,
      repair: ok,
    },
  }).createMachine({
    id: 'provision',
    context: ({ input }) => input,
    initial: 'provisioning',
    states: {
      provisioning: {
        invoke: {
          src: 'provision',
          input: ({ context }) => context.order,
          onDone: 'applying',
          onError: [
            { guard: ({ event }) => (event.error as Error).message === 'no id', target: 'problem.id' },
            { guard: ({ event }) => (event.error as Error).message === 'no item', target: 'problem.item' },
            {
              actions: ({ event }) => {
                throw event.error
              },
            },
          ],
        },
      },
      applying: { invoke: { src: 'apply', onDone: 'end' } },
      problem: {
        initial: 'id',
        states: {
          id: { invoke: { src: 'repair', onDone: 'repaired' } },
          item: { invoke: { src: 'repair', onDone: 'repaired' } },
          repaired: { type: 'final' },
        },
        onDone: 'end',
      },
      end: { type: 'final' },
    },
  }),
  input: { order },
  script: [],
})

export const promises: readonly Example[] = [
  hello,
  greeting,
  answer,
  mail,
  sums,
  applicant(20, true),
  applicant(20, false),
  applicant(12, true),
  visit,
  inbox,
  onboarding(''),
  onboarding('doctor'),
  provision({ id: '7', item: 'chair' }),
  provision({ id: '', item: 'chair' }),
  provision({ id: '7', item: '' }),
  provision({ id: '7', item: 'bomb' }),
]
