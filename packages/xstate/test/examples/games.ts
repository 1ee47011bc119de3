/** In the shapes of XState's counters, clocks and games. */
import { assign, createMachine, fromCallback, setup } from 'xstate'
import { anyEvent, type Example, onTick } from './example.js'

const counter: Example = {
  of: 'counter, nodejs-counter, 7guis-counter-react, 7guis-counter-vue',
  machine: setup({ types: { ...anyEvent.types, context: {} as { n: number } } }).createMachine({
    id: 'counter',
    context: { n: 0 },
    on: {
      UP: { actions: assign({ n: ({ context }) => context.n + 1 }) },
      DOWN: { actions: assign({ n: ({ context }) => context.n - 1 }) },
    },
  }),
  script: [{ type: 'UP' }, { type: 'UP' }, { type: 'DOWN' }],
}

const toggle: Example = {
  of: 'toggle, template-ts',
  machine: setup(anyEvent).createMachine({
    id: 'toggle',
    initial: 'off',
    states: { off: { on: { FLIP: 'on' } }, on: { on: { FLIP: 'off' } } },
  }),
  script: [{ type: 'FLIP' }, { type: 'FLIP' }, { type: 'UNKNOWN' }],
}

const timer: Example = {
  of: 'timer, 7guis-timer-react',
  machine: createMachine({
    id: 'timer',
    types: { ...anyEvent.types, context: {} as { left: number } },
    context: { left: 0 },
    initial: 'stopped',
    states: {
      stopped: {
        on: {
          START: { guard: ({ context }) => context.left > 0, target: 'running' },
          MORE: { actions: assign({ left: ({ context }) => context.left + 2 }) },
        },
      },
      running: {
        invoke: { src: fromCallback(({ sendBack }) => onTick(() => sendBack({ type: 'TICK' }))) },
        on: { STOP: 'stopped', TICK: { actions: assign({ left: ({ context }) => context.left - 1 }) } },
        always: { guard: ({ context }) => context.left === 0, target: 'stopped' },
      },
    },
    on: { RESET: { guard: ({ context }) => context.left > 0, actions: assign({ left: 0 }) } },
  }),
  script: [{ type: 'START' }, { type: 'MORE' }, { type: 'START' }, 'tick', 'tick', { type: 'MORE' }, { type: 'RESET' }],
}

const stopwatch: Example = {
  of: 'stopwatch',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { elapsed: number } },
    actors: { ticks: fromCallback(({ sendBack }) => onTick(() => sendBack({ type: 'TICK' }))) },
  }).createMachine({
    id: 'stopwatch',
    context: { elapsed: 0 },
    initial: 'stopped',
    states: {
      stopped: { on: { START: 'running' } },
      running: {
        invoke: { src: 'ticks' },
        on: { TICK: { actions: assign({ elapsed: ({ context }) => context.elapsed + 1 }) }, STOP: 'stopped' },
      },
    },
    on: { RESET: { target: '.stopped', actions: assign({ elapsed: 0 }) } },
  }),
  script: [{ type: 'START' }, 'tick', 'tick', { type: 'STOP' }, 'tick', { type: 'START' }, 'tick', { type: 'RESET' }],
}

const worm: Example = {
  of: 'snake-react',
  machine: createMachine(
    {
      id: 'Worm',
      types: { ...anyEvent.types, context: {} as { at: number; step: number; fruit: number; score: number } },
      context: { at: 0, step: 1, fruit: 2, score: 0 },
      initial: 'New Game',
      states: {
        'New Game': { on: { TURN: { actions: 'turn', target: '#Worm.Moving' } } },
        Moving: {
          entry: 'move',
          invoke: { src: fromCallback(({ sendBack }) => onTick(() => sendBack({ type: 'TICK' }))) },
          always: [
            { guard: 'hasEaten', actions: ['grow', 'moveFruit'] },
            { guard: 'hasHit', target: '#Worm.Game Over' },
          ],
          on: { TICK: { actions: 'move' }, TURN: { actions: 'turn', target: '#Worm.Moving', reenter: true } },
        },
        'Game Over': { on: { NEW: { actions: 'reset', target: '#Worm.New Game' } } },
      },
    },
    {
      guards: {
        hasEaten: ({ context }) => context.at === context.fruit,
        hasHit: ({ context }) => context.at < 0 || context.at > 4,
      },
      actions: {
        turn: assign({ step: ({ event }) => event.step as number }),
        move: assign({ at: ({ context }) => context.at + context.step }),
        grow: assign({ score: ({ context }) => context.score + 1 }),
        moveFruit: assign({ fruit: ({ context }) => context.fruit + 2 }),
        reset: assign({ at: 1, step: 1, fruit: 2, score: 0 }),
      },
    },
  ),
  script: [{ type: 'TURN', step: 1 }, 'tick', 'tick', { type: 'TURN', step: 1 }, 'tick', { type: 'NEW' }],
}

const LINES = [
  [0, 1, 2],
  [0, 3, 6],
] as const
type Board = { cells: (string | null)[]; moves: number; player: 'x' | 'o'; winner: string | undefined }
const emptyBoard = (): Board => ({ cells: Array<null>(9).fill(null), moves: 0, player: 'x', winner: undefined })

const noughts: Example = {
  of: 'tic-tac-toe-react',
  machine: setup({
    types: { ...anyEvent.types, context: {} as Board },
    guards: {
      hasLine: ({ context: { cells } }) =>
        LINES.some(([a, b, c]) => cells[a] !== null && cells[a] === cells[b] && cells[a] === cells[c]),
      isFull: ({ context }) => context.moves === 9,
      isFree: ({ context, event }) => context.cells[event.at as number] === null,
    },
  }).createMachine({
    id: 'noughts',
    context: emptyBoard,
    initial: 'playing',
    states: {
      playing: {
        always: [
          {
            guard: 'hasLine',
            target: 'over.won',
            actions: assign({ winner: ({ context }) => (context.player === 'x' ? 'o' : 'x') }),
          },
          { guard: 'isFull', target: 'over.drawn' },
        ],
        on: {
          PLAY: [
            {
              guard: 'isFree',
              target: 'playing',
              actions: assign({
                cells: ({ context, event }) => context.cells.with(event.at as number, context.player),
                moves: ({ context }) => context.moves + 1,
                player: ({ context }) => (context.player === 'x' ? 'o' : 'x'),
              }),
            },
          ],
        },
      },
      over: {
        initial: 'won',
        states: { won: { tags: 'won' }, drawn: { tags: ['drawn'] } },
        on: { AGAIN: { target: 'playing', actions: assign(emptyBoard) } },
      },
    },
  }),
  script: [...[0, 4, 4, 1, 5, 2].map((at) => ({ type: 'PLAY', at })), { type: 'AGAIN' }],
}

const tiles: Example = {
  of: 'tiles',
  machine: setup({
    types: {
      ...anyEvent.types,
      context: {} as { order: number[]; chosen: number | undefined; over: number | undefined },
    },
  }).createMachine({
    id: 'tiles',
    context: { order: [0, 1, 2], chosen: undefined, over: undefined },
    initial: 'start',
    states: {
      start: {},
      solved: {},
      playing: {
        on: { 'tile.shuffle': undefined },
        always: { guard: ({ context }) => context.order.every((tile, place) => tile === place), target: 'solved' },
        initial: 'choosing',
        states: {
          choosing: {
            on: {
              'tile.choose': { target: 'chosen', actions: assign({ chosen: ({ event }) => event.tile as number }) },
            },
          },
          chosen: {
            on: {
              'tile.over': { actions: assign({ over: ({ event }) => event.tile as number }) },
              'tile.drop': { target: 'choosing', actions: assign({ chosen: undefined, over: undefined }) },
              'tile.swap': {
                target: 'choosing',
                actions: assign(({ context: { order, chosen = 0, over = 0 } }) => ({
                  order: order.with(chosen, order[over] ?? 0).with(over, order[chosen] ?? 0),
                  chosen: undefined,
                  over: undefined,
                })),
              },
            },
          },
        },
      },
    },
    on: { 'tile.shuffle': { target: '.playing', actions: assign({ order: [1, 0, 2] }) } },
  }),
  script: [
    { type: 'tile.shuffle' },
    { type: 'tile.choose', tile: 0 },
    { type: 'tile.drop' },
    { type: 'tile.choose', tile: 0 },
    { type: 'tile.over', tile: 1 },
    { type: 'tile.swap' },
  ],
}

export const games: readonly Example[] = [counter, toggle, timer, stopwatch, worm, noughts, tiles]
