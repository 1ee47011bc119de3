/** In the shapes of the machines behind XState's forms, players and lists. */
import { assertEvent, assign, fromCallback, fromPromise, not, setup } from 'xstate'
import { anyEvent, does, type Example, HOUR, onTick } from './example.js'

const quiz: Example = {
  of: 'trivia-game-example',
  machine: setup({
    types: {
      events: {} as
        | { type: 'user.play' | 'user.next' | 'user.hint' | 'user.again' }
        | { type: 'user.answer'; answer: number },
      context: {} as {
        loaded: boolean
        asked: number
        sought: number | null
        hint: boolean
        points: number
        lives: number
      },
    },
    guards: {
      isRight: ({ context, event }) => {
        assertEvent(event, 'user.answer')
        return event.answer === context.sought
      },
      isLost: ({ context }) => context.lives <= 0,
      isWon: ({ context }) => context.points >= 20,
    },
    actions: { show: does('shown'), reset: assign({ sought: null, asked: 0, points: 0, lives: 1 }) },
    actors: {
      prepare: fromPromise(async () => true),
      pick: fromPromise(async ({ input }: { input: number }) => input + 1),
    },
  }).createMachine({
    id: 'quiz',
    context: { loaded: false, asked: 0, sought: null, hint: false, points: 0, lives: 1 },
    initial: 'home',
    states: {
      home: {
        initial: 'loading',
        states: {
          loading: { invoke: { src: 'prepare', onDone: { target: 'loaded', actions: assign({ loaded: true }) } } },
          loaded: { on: { 'user.play': { target: '#game' } } },
        },
      },
      game: {
        id: 'game',
        entry: ['show', 'reset'],
        initial: 'picking',
        states: {
          picking: {
            id: 'picking',
            entry: assign({ loaded: false }),
            initial: 'first',
            states: {
              first: {
                invoke: {
                  src: 'pick',
                  input: ({ context }) => context.asked,
                  onDone: {
                    target: '#asking',
                    actions: assign({ sought: ({ event }) => event.output, asked: ({ context }) => context.asked + 1 }),
                  },
                },
              },
            },
          },
          asking: {
            id: 'asking',
            on: { 'user.hint': { actions: assign(({ context }) => ({ hint: !context.hint })) } },
            initial: 'open',
            states: {
              open: {
                on: {
                  'user.answer': [
                    { guard: 'isRight', target: 'right' },
                    { guard: not('isRight'), target: 'wrong' },
                  ],
                },
              },
              right: {
                entry: assign({ points: ({ context }) => context.points + 10 }),
                always: [{ guard: 'isWon', target: 'won' }],
                on: { 'user.next': '#picking' },
              },
              wrong: {
                entry: assign({ lives: ({ context }) => context.lives - 1 }),
                always: [{ guard: 'isLost', target: 'lost' }],
                on: { 'user.next': '#picking' },
              },
              lost: { on: { 'user.again': '#game' } },
              won: { on: { 'user.again': '#game' } },
            },
          },
        },
      },
    },
  }),
  script: [
    { type: 'user.play' },
    { type: 'user.hint' },
    { type: 'user.answer', answer: 1 },
    { type: 'user.next' },
    { type: 'user.answer', answer: 2 },
    { type: 'user.again' },
    { type: 'user.answer', answer: 9 },
  ],
}

const flight: Example = {
  of: '7guis-flight-booker-react',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { there: string; back: string } },
    actors: { book: fromPromise(async () => {}) },
    guards: {
      isOpen: ({ context }) => context.there >= '2031-01-01',
      isReturn: ({ context }, { after }: { after: string }) => context.back > context.there && context.back > after,
    },
    actions: { setThere: assign((_, { day }: { day: string }) => ({ there: day })) },
  }).createMachine({
    id: 'flight',
    context: { there: '2031-01-01', back: '2031-01-02' },
    initial: 'planning',
    states: {
      planning: {
        initial: 'oneWay',
        on: { THERE: { actions: { type: 'setThere', params: ({ event }) => ({ day: event.day as string }) } } },
        states: {
          oneWay: { on: { KIND: 'bothWays', BOOK: { target: '#flight.booking', guard: { type: 'isOpen' } } } },
          bothWays: {
            on: {
              KIND: 'oneWay',
              BACK: { actions: assign({ back: ({ event }) => event.day as string }) },
              BOOK: { target: '#flight.booking', guard: { type: 'isReturn', params: { after: '2031-01-01' } } },
            },
          },
        },
      },
      booking: { invoke: { src: 'book', onDone: 'booked', onError: 'planning' } },
      booked: { type: 'final' },
    },
  }),
  script: [
    { type: 'THERE', day: '2031-03-01' },
    { type: 'KIND' },
    { type: 'BOOK' },
    { type: 'BACK', day: '2031-03-09' },
    { type: 'BOOK' },
  ],
}

const degrees: Example = {
  of: '7guis-temperature-react, 7guis-temperature-vue',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { c: number | string | undefined; f: number | string | undefined } },
  }).createMachine({
    id: 'degrees',
    context: { c: undefined, f: undefined },
    on: {
      C: {
        actions: assign({
          c: ({ event }) => event.value as string,
          f: ({ event }) => (event.value === '' ? '' : Number(event.value) * 1.8 + 32),
        }),
      },
      F: {
        actions: assign({
          f: ({ event }) => event.value as string,
          c: ({ event }) => (event.value === '' ? '' : (Number(event.value) - 32) / 1.8),
        }),
      },
    },
  }),
  script: [
    { type: 'C', value: '100' },
    { type: 'F', value: '32' },
    { type: 'F', value: '' },
  ],
}

const video: Example = {
  of: 'video-player-react',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { at: number; length: number } },
    actors: {
      load: fromPromise(async () => ({ length: 2 })),
      clock: fromCallback(({ sendBack }) => onTick(() => sendBack({ type: 'TICK' }))),
    },
    delays: { refill: HOUR },
  }).createMachine({
    id: 'video',
    context: { at: 0, length: 9 },
    initial: 'loading',
    states: {
      loading: { invoke: { src: 'load', onDone: { target: 'ready', actions: assign(({ event }) => event.output) } } },
      ready: {
        initial: 'paused',
        on: { SEEK: { actions: assign({ at: ({ event }) => event.at as number }) } },
        states: {
          paused: { on: { PLAY: 'playing' } },
          playing: {
            invoke: { src: 'clock' },
            always: { guard: ({ context }) => context.at >= context.length, target: 'ended' },
            on: {
              PAUSE: 'paused',
              STALL: 'stalled',
              TICK: { actions: assign({ at: ({ context }) => context.at + 1 }) },
            },
          },
          stalled: { after: { refill: 'playing' }, on: { PAUSE: 'paused' } },
          ended: { on: { AGAIN: { target: 'playing', actions: assign({ at: 0 }) } } },
        },
      },
    },
  }),
  script: [{ type: 'PLAY' }, 'tick', { type: 'STALL' }, HOUR, 'tick', { type: 'AGAIN' }, { type: 'SEEK', at: 5 }],
}

type Task = { id: string; title: string; done: boolean }

const tasks: Example = {
  of: 'todomvc-react',
  machine: setup({ types: { ...anyEvent.types, context: {} as { tasks: Task[] } } }).createMachine({
    id: 'tasks',
    context: { tasks: [] },
    on: {
      'task.add': {
        guard: ({ event }) => event.title !== '',
        actions: assign({
          tasks: ({ context, event }) => [
            ...context.tasks,
            { id: `${context.tasks.length}`, title: String(event.title), done: false },
          ],
        }),
      },
      'task.mark': {
        actions: assign({
          tasks: ({ context, event }) =>
            context.tasks.map((task) => (task.id === event.id ? { ...task, done: true } : task)),
        }),
      },
      'tasks.clear': { actions: assign({ tasks: ({ context }) => context.tasks.filter(({ done }) => !done) }) },
    },
  }),
  script: [
    { type: 'task.add', title: 'eat' },
    { type: 'task.add', title: '' },
    { type: 'task.add', title: 'sleep' },
    { type: 'task.mark', id: '0' },
    { type: 'tasks.clear' },
  ],
}

export const forms: readonly Example[] = [quiz, flight, degrees, video, tasks]
