/** In the shapes of XState's examples that wait: for an event, until a deadline, between two attempts. */
import { assign, fromPromise, setup } from 'xstate'
import { anyEvent, does, type Example, HOUR, nextTick, ok } from './example.js'

const readings = setup({
  types: { ...anyEvent.types, context: {} as { heat: number | null; damp: number | null; reports: number } },
  actors: { report: fromPromise(async ({ input }: { input: { heat: number | null } }) => input.heat) },
  delays: { collected: HOUR },
  guards: { isComplete: ({ context }) => context.heat !== null && context.damp !== null },
}).createMachine({
  id: 'readings',
  context: { heat: null, damp: null, reports: 0 },
  initial: 'collecting',
  states: {
    collecting: {
      entry: assign({ heat: null, damp: null }),
      on: {
        HEAT: { actions: assign({ heat: ({ event }) => event.value as number }) },
        DAMP: { actions: assign({ damp: ({ event }) => event.value as number }) },
      },
      after: { collected: { guard: 'isComplete', target: 'reporting' } },
    },
    reporting: {
      invoke: {
        src: 'report',
        input: ({ context }) => ({ heat: context.heat }),
        onDone: { target: 'collecting', actions: assign({ reports: ({ context }) => context.reports + 1 }) },
      },
    },
  },
})

const collecting: Example = {
  of: 'workflow-accumulate-room-readings',
  machine: readings,
  script: [{ type: 'HEAT', value: 20 }, { type: 'DAMP', value: 50 }, HOUR, { type: 'HEAT', value: 10 }, HOUR],
}

const loan = (answers: string[], reply: string): Example => {
  return {
    of: 'workflow-book-lending',
    machine: setup({
      types: { ...anyEvent.types, context: {} as { title: string | null; asked: number; state: string | null } },
      actors: {
        look: fromPromise(async ({ input }: { input: number }) => ({ state: answers[input] ?? 'gone' })),
        tell: ok,
        hold: ok,
        drop: ok,
        stamp: ok,
      },
      delays: { twoWeeks: 336 * HOUR },
    }).createMachine({
      id: 'loan',
      context: { title: null, asked: 0, state: null },
      initial: 'Wanted',
      states: {
        Wanted: {
          on: { WANT: { target: 'Looking', actions: assign({ title: ({ event }) => event.title as string }) } },
        },
        Looking: {
          invoke: {
            src: 'look',
            input: ({ context }) => context.asked,
            onDone: {
              target: 'Deciding',
              actions: assign({ state: ({ event }) => event.output.state, asked: ({ context }) => context.asked + 1 }),
            },
          },
        },
        Deciding: {
          always: [
            { guard: ({ context }) => context.state === 'lent', target: 'Telling' },
            { guard: ({ context }) => context.state === 'here', target: 'Handing out' },
            { target: 'End' },
          ],
        },
        Telling: { invoke: { src: 'tell', onDone: 'Waiting for an answer' } },
        'Waiting for an answer': { on: { HOLD: 'Holding', DROP: 'Dropping' } },
        Holding: { invoke: { src: 'hold', onDone: 'Waiting' } },
        Dropping: { invoke: { src: 'drop', onDone: 'End' } },
        Waiting: { after: { twoWeeks: 'Looking' } },
        'Handing out': {
          initial: 'Stamping',
          states: {
            Stamping: { invoke: { src: 'stamp', onDone: 'Telling' } },
            Telling: { invoke: { src: 'tell', onDone: 'End' } },
            End: { type: 'final' },
          },
          onDone: 'End',
        },
        End: { type: 'final' },
      },
    }),
    script: [{ type: 'WANT', title: 'Emma' }, { type: reply }, 336 * HOUR],
  }
}

const auction: Example = {
  of: 'workflow-car-auction-bids, pattern-event-accumulation',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { bids: number[] } },
    delays: { open: 3 * HOUR },
  }).createMachine({
    id: 'auction',
    context: { bids: [] },
    initial: 'open',
    states: {
      open: {
        on: { BID: { actions: assign({ bids: ({ context, event }) => [...context.bids, event.amount as number] }) } },
        after: { open: 'closed' },
      },
      closed: { type: 'final', output: ({ context }) => ({ highest: Math.max(...context.bids) }) },
    },
    output: ({ event }) => (event as { output?: unknown }).output,
  }),
  script: [{ type: 'BID', amount: 3 }, HOUR, { type: 'BID', amount: 5 }, { type: 'BID', amount: 4 }, 2 * HOUR],
}

const decision = (verdict: 'yes' | 'no' | 'perhaps' | 'late'): Example => ({
  of: 'workflow-credit-check',
  machine: setup({
    types: { context: {} as { verdict: string | null } },
    actors: {
      ask: fromPromise<{ verdict: string }>(async ({ signal }) => {
        if (verdict === 'late') await nextTick(signal)
        return { verdict }
      }),
      begin: ok,
      decline: ok,
    },
    delays: { patience: HOUR },
  }).createMachine({
    id: 'decision',
    context: { verdict: null },
    initial: 'asking',
    states: {
      asking: {
        invoke: {
          src: 'ask',
          onDone: { target: 'deciding', actions: assign({ verdict: ({ event }) => event.output.verdict }) },
        },
        after: { patience: 'timedOut' },
      },
      deciding: {
        always: [
          { guard: ({ context }) => context.verdict === 'yes', target: 'beginning' },
          { guard: ({ context }) => context.verdict === 'no', target: 'declining' },
          { target: 'declining' },
        ],
      },
      beginning: { invoke: { src: 'begin', onDone: 'end' } },
      declining: { invoke: { src: 'decline', onDone: 'end' } },
      end: { type: 'final' },
      timedOut: {},
    },
  }),
  script: [HOUR],
})

const visa = (script: Example['script']): Example => ({
  of: 'workflow-event-based',
  machine: setup({ ...anyEvent, actors: { grant: ok, refuse: ok, remind: ok } }).createMachine({
    id: 'visa',
    initial: 'pending',
    states: {
      pending: { on: { GRANTED: 'granting', REFUSED: 'refusing' }, after: { [HOUR]: 'reminding' } },
      granting: { invoke: { src: 'grant', onDone: 'end' } },
      refusing: { invoke: { src: 'refuse', onDone: 'end' } },
      reminding: { invoke: { src: 'remind', onDone: 'end' } },
      end: { type: 'final' },
    },
  }),
  script,
})

const filling: Example = {
  of: 'workflow-filling-water',
  machine: setup({
    types: { input: {} as { level: number; brim: number }, context: {} as { glass: { level: number; brim: number } } },
  }).createMachine({
    id: 'filling',
    context: ({ input }) => ({ glass: input }),
    initial: 'looking',
    states: {
      looking: {
        always: [
          { guard: ({ context: { glass } }) => glass.level < glass.brim, target: 'pouring' },
          { target: 'full' },
        ],
      },
      pouring: {
        after: {
          [HOUR]: {
            target: 'looking',
            actions: assign({ glass: ({ context: { glass } }) => ({ ...glass, level: glass.level + 1 }) }),
          },
        },
      },
      full: { type: 'final' },
    },
  }),
  input: { level: 0, brim: 2 },
  script: [HOUR, HOUR],
}

const job = (outcome: 'well' | 'badly'): Example => ({
  of: 'workflow-monitor-job, pattern-polling',
  machine: setup({
    types: { input: {} as { name: string }, context: {} as { name: string; asked: number; state: string | undefined } },
    actors: {
      submit: fromPromise(async ({ input }: { input: string }) => ({ name: `${input}-1` })),
      ask: fromPromise(async ({ input }: { input: number }) => (input < 1 ? 'busy' : outcome)),
      report: ok,
    },
  }).createMachine({
    id: 'job',
    context: ({ input }) => ({ name: input.name, asked: 0, state: undefined }),
    initial: 'submitting',
    states: {
      submitting: {
        invoke: {
          src: 'submit',
          input: ({ context }) => context.name,
          onDone: { target: 'waiting', actions: assign({ name: ({ event }) => event.output.name }) },
        },
      },
      waiting: { after: { [HOUR]: 'asking' } },
      asking: {
        invoke: {
          src: 'ask',
          input: ({ context }) => context.asked,
          onDone: {
            target: 'deciding',
            actions: assign({ state: ({ event }) => event.output, asked: ({ context }) => context.asked + 1 }),
          },
        },
      },
      deciding: {
        always: [
          { guard: ({ context }) => context.state === 'well', target: 'wentWell' },
          { guard: ({ context }) => context.state === 'badly', target: 'wentBadly' },
          { target: 'waiting' },
        ],
      },
      wentWell: { invoke: { src: 'report', onDone: 'end' } },
      wentBadly: { invoke: { src: 'report', onDone: 'end' } },
      end: { type: 'final' },
    },
  }),
  input: { name: 'backup' },
  script: [HOUR, HOUR],
})

const purchase = (script: Example['script']): Example => ({
  of: 'workflow-purchase-order-deadline, pattern-deadline-timeout',
  machine: setup({
    ...anyEvent,
    actors: { recall: ok },
    actions: { made: does('made'), sent: does('sent'), finished: does('finished'), recalled: does('recalled') },
    delays: { thirtyDays: 720 * HOUR },
  }).createMachine({
    id: 'purchase',
    initial: 'new',
    after: { thirtyDays: '.recalling' },
    states: {
      new: { on: { MADE: { target: 'made', actions: 'made' } } },
      made: { on: { SENT: { target: 'sent', actions: 'sent' } } },
      sent: { type: 'final', entry: 'finished' },
      recalling: { invoke: { src: 'recall', onDone: 'recalled' } },
      recalled: { type: 'final', entry: 'recalled' },
    },
  }),
  script,
})

const loading: Example = {
  of: 'fetch, pattern-retry-policy, connection-manager',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { tries: number; data: unknown } },
    actors: {
      load: fromPromise(async ({ input }: { input: number }) => {
        if (input < 2) throw new TypeError('no line')
        return { text: 'hello' }
      }),
    },
    delays: { pause: ({ context }) => context.tries * HOUR },
  }).createMachine({
    id: 'loading',
    context: { tries: 0, data: null },
    initial: 'idle',
    states: {
      idle: { on: { LOAD: 'loading' } },
      loading: {
        entry: assign({ tries: ({ context }) => context.tries + 1 }),
        invoke: {
          src: 'load',
          input: ({ context }) => context.tries - 1,
          onDone: { target: 'loaded', actions: assign({ data: ({ event }) => event.output }) },
          onError: 'failed',
        },
      },
      failed: { after: { pause: 'loading' }, on: { RETRY: 'loading' } },
      loaded: {},
    },
  }),
  script: [{ type: 'LOAD' }, HOUR, { type: 'RETRY' }],
}

export const delays: readonly Example[] = [
  collecting,
  loan(['lent', 'here'], 'HOLD'),
  loan(['lent'], 'DROP'),
  auction,
  decision('yes'),
  decision('no'),
  decision('perhaps'),
  decision('late'),
  visa([{ type: 'GRANTED' }]),
  visa([{ type: 'REFUSED' }]),
  visa([HOUR]),
  filling,
  job('well'),
  job('badly'),
  purchase([{ type: 'MADE' }, { type: 'SENT' }]),
  purchase([{ type: 'MADE' }, 720 * HOUR]),
  loading,
]
