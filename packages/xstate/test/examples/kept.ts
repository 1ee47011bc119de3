/** In the shapes of XState's examples that keep a machine between requests, and of what it should remember. */
import { assign, createMachine, fromEventObservable, fromPromise, setup } from 'xstate'
import { anyEvent, does, type Example, onTick } from './example.js'

const light: Example = {
  of: 'express-workflow',
  machine: setup({ types: { ...anyEvent.types, context: {} as { rounds: number } } }).createMachine({
    id: 'light',
    context: { rounds: 0 },
    initial: 'go',
    states: {
      go: { on: { NEXT: 'slow' } },
      slow: { on: { NEXT: 'stop' } },
      stop: { on: { NEXT: { target: 'go', actions: assign({ rounds: ({ context }) => context.rounds + 1 }) } } },
    },
  }),
  script: [{ type: 'NEXT' }, { type: 'NEXT' }, { type: 'NEXT' }],
}

const bureaus = ['a', 'b'] as const
type Score = { scores: { [bureau: string]: number }; rate: number; problem: string }

/** Looks a score up, and asks for it if there is none. */
const bureau = (name: (typeof bureaus)[number]) => ({
  initial: 'looking',
  states: {
    looking: {
      invoke: {
        src: 'look' as const,
        input: { name },
        onDone: [
          {
            guard: ({ event }: { event: { output: number } }) => event.output > 0,
            target: 'found',
            actions: assign<Score, { type: string; output: number }, undefined, { type: string }, never>({
              scores: ({ context, event }) => ({ ...context.scores, [name]: event.output }),
            }),
          },
          { target: 'asking' },
        ],
        onError: 'failed',
      },
    },
    asking: {
      invoke: {
        src: 'ask' as const,
        input: { name },
        onDone: {
          target: 'found',
          actions: assign<Score, { type: string; output: number }, undefined, { type: string }, never>({
            scores: ({ context, event }) => ({ ...context.scores, [name]: event.output }),
          }),
        },
        onError: 'failed',
      },
    },
    found: { type: 'final' as const },
    failed: { type: 'final' as const },
  },
})

const credit = (answer: number): Example => ({
  of: 'credit-check-api, mongodb-credit-check-api',
  machine: setup({
    types: { ...anyEvent.types, context: {} as Score },
    actors: {
      verify: fromPromise(async ({ input }: { input: string }) => {
        if (input !== '123') throw new Error('unknown')
      }),
      look: fromPromise(async ({ input }: { input: { name: string } }) => (input.name === 'a' ? 700 : 0)),
      ask: fromPromise(async ({ input }: { input: { name: string } }) => {
        if (answer === 0) throw new Error(`${input.name} is silent`)
        return answer
      }),
      rate: fromPromise(async ({ input }: { input: number[] }) => Math.min(...input) / 100),
    },
    actions: { mail: does('mailed') },
  }).createMachine({
    id: 'credit',
    context: { scores: {}, rate: 0, problem: '' },
    initial: 'checking',
    states: {
      completed: { type: 'final' },
      checking: {
        initial: 'Entering',
        states: {
          Entering: { on: { SUBMIT: { target: 'Verifying', actions: assign({ problem: '' }) } } },
          Verifying: {
            invoke: {
              src: 'verify',
              input: ({ event }) => (event as { number?: string }).number ?? '',
              onDone: 'Scoring',
              onError: { target: 'Entering', actions: assign({ problem: ({ event }) => String(event.error) }) },
            },
          },
          Scoring: {
            type: 'parallel',
            states: { a: bureau('a'), b: bureau('b') },
            onDone: [
              { guard: ({ context }) => bureaus.every((name) => (context.scores[name] ?? 0) > 0), target: 'Rating' },
              { target: 'Entering', actions: assign({ problem: 'too few scores' }) },
            ],
          },
          Rating: {
            initial: 'asking',
            states: {
              asking: {
                invoke: {
                  src: 'rate',
                  input: ({ context }) => Object.values(context.scores),
                  onDone: { target: 'rated', actions: assign({ rate: ({ event }) => event.output }) },
                  onError: '#credit.checking.Entering',
                },
              },
              rated: { type: 'final', entry: ['mail', does('told')] },
            },
            onDone: '#credit.completed',
          },
        },
      },
    },
  }),
  script: [
    { type: 'SUBMIT', number: '9' },
    { type: 'SUBMIT', number: '123' },
  ],
})

const cake: Example = {
  of: 'mongodb-persisted-state, persisted-donut-maker',
  machine: createMachine({
    id: 'cake',
    types: anyEvent.types,
    initial: 'shopping',
    states: {
      shopping: { on: { NEXT: 'baking' } },
      baking: {
        initial: 'heating',
        states: {
          heating: { on: { NEXT: 'stirring' } },
          stirring: {
            type: 'parallel',
            states: {
              dry: { initial: 'apart', states: { apart: { on: { DRY: 'stirred' } }, stirred: { type: 'final' } } },
              wet: { initial: 'apart', states: { apart: { on: { WET: 'stirred' } }, stirred: { type: 'final' } } },
            },
            onDone: 'stirred',
          },
          stirred: { type: 'final' },
        },
        onDone: 'serving',
      },
      serving: { on: { ANOTHER: 'shopping' } },
    },
  }),
  script: [...['NEXT', 'NEXT', 'WET', 'DRY', 'ANOTHER', 'NEXT'].map((type) => ({ type }))],
}

const call: Example = {
  of: 'ivr-system-express',
  machine: createMachine({
    id: 'call',
    types: anyEvent.types,
    initial: 'greeting',
    states: {
      greeting: { on: { 'KEY-1': 'north', 'KEY-2': 'south' }, meta: { say: ['Press 1 or 2'] } },
      north: { on: { 'KEY-9': 'greeting' }, meta: { say: ['Closed'] } },
      south: { meta: { say: ['Open'], connect: { to: '15550100' } } },
    },
  }),
  script: [{ type: 'KEY-1' }, { type: 'KEY-9' }, { type: 'KEY-2' }],
}

const settings: Example = {
  of: 'history-states',
  machine: setup({ types: { ...anyEvent.types, context: {} as { opened: number } } }).createMachine({
    id: 'settings',
    context: { opened: 0 },
    initial: 'open',
    states: {
      closed: { on: { OPEN: 'open', BACK: 'open.lastTab', 'BACK.deep': 'open.lastPlace' } },
      open: {
        entry: assign({ opened: ({ context }) => context.opened + 1 }),
        initial: 'plain',
        states: {
          plain: {},
          hard: { initial: 'net', states: { net: {}, lab: {} }, on: { LAB: '.lab' } },
          lastTab: { type: 'history', target: 'plain' },
          lastPlace: { type: 'history', history: 'deep', target: 'plain' },
        },
        on: { HARD: '.hard', CLOSE: 'closed' },
      },
    },
  }),
  script: [...['HARD', 'LAB', 'CLOSE', 'BACK', 'LAB', 'CLOSE', 'BACK.deep', 'CLOSE', 'OPEN'].map((type) => ({ type }))],
}

const sensor = (fails: boolean): Example => ({
  of: 'rxjs-observable-actor',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { values: unknown[]; problem: string | null } },
    actors: {
      feed: fromEventObservable(({ input }: { input: { fails: boolean } }) => ({
        subscribe(observer: unknown) {
          const { next, complete, error } = observer as {
            next(value: unknown): void
            complete(): void
            error(problem: unknown): void
          }
          let n = 0
          const unsubscribe = onTick(() => {
            n += 1
            if (n === 1) return next({ type: 'VALUE', value: 20 })
            unsubscribe()
            return input.fails ? error(new Error('cut off')) : complete()
          })
          return { unsubscribe }
        },
      })),
    },
  }).createMachine({
    id: 'sensor',
    context: { values: [], problem: null },
    initial: 'reading',
    states: {
      reading: {
        invoke: {
          src: 'feed',
          input: { fails },
          onDone: 'completed',
          onError: { target: 'failed', actions: assign({ problem: ({ event }) => (event.error as Error).message }) },
        },
        on: {
          VALUE: { actions: assign({ values: ({ context, event }) => [...context.values, event.value] }) },
          PAUSE: 'paused',
        },
      },
      paused: { on: { RESUME: 'reading' } },
      completed: { type: 'final' },
      failed: { type: 'final' },
    },
    output: ({ context }) => context,
  }),
  script: ['tick', { type: 'PAUSE' }, 'tick', { type: 'RESUME' }, 'tick'],
})

export const kept: readonly Example[] = [
  light,
  credit(680),
  credit(0),
  cake,
  call,
  settings,
  sensor(false),
  sensor(true),
]
