/** In the shapes of XState's examples that start actors by the number. */
import {
  type AnyActorRef,
  assign,
  createMachine,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  fromTransition,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from 'xstate'
import { anyEvent, does, type Example, HOUR } from './example.js'

/** Does one step, again and again until it works or has failed too often. */
const service = (id: string, failures: number) =>
  setup({
    types: { ...anyEvent.types, context: {} as { failures: number } },
    actors: {
      work: fromPromise(async ({ input }: { input: number }) => {
        if (input < failures) throw { kind: 'not there' }
      }),
    },
    actions: { count: assign({ failures: ({ context }) => context.failures + 1 }), tell: does(`${id} failed`) },
    guards: { isEnough: ({ context }) => context.failures > 1 },
    delays: { pause: HOUR },
  }).createMachine({
    id,
    context: { failures: 0 },
    initial: 'running',
    states: {
      running: {
        invoke: {
          src: 'work',
          id: 'work',
          input: ({ context }) => context.failures,
          onDone: 'done',
          onError: [{ target: 'failed' }],
        },
      },
      failed: {
        entry: ['tell', 'count'],
        after: { pause: [{ guard: 'isEnough', target: 'gaveUp' }, { target: 'running' }] },
        on: { RETRY: 'running' },
      },
      done: { type: 'final' },
      gaveUp: { type: 'final', entry: [sendParent({ type: 'NOT_DONE' })] },
    },
  })

const step = (src: string, target: string) => ({ invoke: { src, id: src, onDone: [{ target }] } })

const stack = createMachine({
  id: 'stack',
  types: anyEvent.types,
  initial: 'idle',
  on: { NOT_DONE: '.notDone' },
  states: {
    idle: { on: { UP: 'up', DOWN: 'down' } },
    up: { initial: 'one', states: { one: step('first', 'two'), two: step('second', 'done'), done: { type: 'final' } } },
    down: { initial: 'one', states: { one: step('first', 'done'), done: { type: 'final' } } },
    notDone: { type: 'final' },
  },
})

const deployment = (failures: number, script: Example['script']): Example => ({
  of: 'deep-persistence-with-restore, provisioning-with-history',
  machine: stack.provide({ actors: { first: service('first', 0), second: service('second', failures) } }),
  script: [{ type: 'UP' }, ...script],
})

const friend = setup({
  types: { ...anyEvent.types, input: {} as { name: string }, context: {} as { before: string; name: string } },
}).createMachine({
  id: 'friend',
  context: ({ input }) => ({ before: input.name, name: input.name }),
  initial: 'shown',
  states: {
    shown: { tags: 'shown', on: { EDIT: 'edited' } },
    edited: {
      tags: 'form',
      on: { NAME: { actions: assign({ name: ({ event }) => event.name as string }) }, SAVE: 'saved' },
    },
    saved: {
      tags: ['form', 'saving'],
      after: { [HOUR]: { target: 'shown', actions: assign({ before: ({ context }) => context.name }) } },
    },
  },
  on: { CANCEL: { target: '.shown', actions: assign({ name: ({ context }) => context.before }) } },
})

const friends: Example = {
  of: 'friends-list-react',
  machine: createMachine({
    id: 'friends',
    types: { ...anyEvent.types, context: {} as { typed: string; friends: AnyActorRef[] } },
    context: { typed: '', friends: [] },
    on: {
      'FRIEND.TYPE': { actions: assign({ typed: ({ event }) => event.name as string }) },
      'FRIEND.ADD': {
        guard: ({ context }) => context.typed.trim() !== '',
        actions: assign({
          friends: ({ context, spawn }) => [
            ...context.friends,
            spawn(friend, { id: `friend-${context.friends.length}`, input: { name: context.typed } }),
          ],
          typed: '',
        }),
      },
      'FRIEND.REMOVE': {
        actions: [
          stopChild(({ context, event }) => context.friends[(event as { index?: number }).index ?? 0] as AnyActorRef),
          assign({ friends: ({ context, event }) => context.friends.toSpliced(event.index as number, 1) }),
        ],
      },
    },
  }),
  spawned: [friend],
  script: [
    { type: 'FRIEND.ADD' },
    { type: 'FRIEND.TYPE', name: 'Ada' },
    { type: 'FRIEND.ADD' },
    { type: 'FRIEND.TYPE', name: 'Bob' },
    { type: 'FRIEND.ADD' },
    { child: 'friend-0', event: { type: 'EDIT' } },
    { child: 'friend-0', event: { type: 'NAME', name: 'Eve' } },
    { child: 'friend-0', event: { type: 'SAVE' } },
    { child: 'friend-1', event: { type: 'EDIT' } },
    { child: 'friend-1', event: { type: 'CANCEL' } },
    HOUR,
    { type: 'FRIEND.REMOVE', index: 0 },
  ],
}

type Task = { id: string; title: string; done: boolean }

const task = setup({
  types: { ...anyEvent.types, input: {} as Task, context: {} as Task },
}).createMachine({
  id: 'task',
  context: ({ input }) => input,
  on: {
    MARK: {
      actions: [assign({ done: true }), sendParent(({ context }) => ({ type: 'TASK.COMMIT', task: { ...context } }))],
    },
    DELETE: { actions: sendParent(({ context }) => ({ type: 'TASK.DELETE', id: context.id })) },
  },
})

type Kept = Task & { ref: AnyActorRef }

const actors: Example = {
  of: 'todo-mvc-vue, actor-addresses',
  machine: setup({ types: { ...anyEvent.types, context: {} as { tasks: Kept[] } }, actors: { task } }).createMachine({
    id: 'actors',
    context: ({ spawn }) => ({
      tasks: ['eat', 'sleep'].map((title, n) => {
        const input = { id: `${n}`, title, done: false }
        return { ...input, ref: spawn('task', { id: `task-${n}`, input }) }
      }),
    }),
    initial: 'loading',
    states: { loading: { always: 'ready' }, ready: {} },
    on: {
      'TASK.COMMIT': {
        actions: assign({
          tasks: ({ context, event }) =>
            context.tasks.map((kept) =>
              kept.id === (event.task as Task).id ? { ...kept, ...(event.task as Task) } : kept,
            ),
        }),
      },
      'TASK.DELETE': {
        actions: enqueueActions(({ context, event, enqueue }) => {
          enqueue.stopChild(`task-${String(event.id)}`)
          enqueue.assign({ tasks: context.tasks.filter(({ id }) => id !== event.id) })
        }),
      },
      'MARK.all': {
        actions: ({ context }) => {
          for (const { ref } of context.tasks) ref.send({ type: 'MARK' })
        },
      },
    },
  }),
  script: [{ type: 'MARK.all' }, { child: 'task-1', event: { type: 'DELETE' } }],
}

const errand = setup({
  types: {
    input: {} as { id: string; failures: number },
    context: {} as { id: string; failures: number; tries: number },
  },
  actors: {
    run: fromPromise(async ({ input }: { input: { failures: number; tries: number } }) => {
      if (input.tries < input.failures) throw new Error('failed')
    }),
  },
  delays: { pause: ({ context }) => HOUR * 2 ** (context.tries - 1) },
}).createMachine({
  id: 'errand',
  context: ({ input }) => ({ ...input, tries: 0 }),
  initial: 'running',
  states: {
    running: {
      invoke: {
        src: 'run',
        input: ({ context }) => context,
        onDone: 'done',
        onError: [
          { guard: ({ context }) => context.tries === 1, target: 'lost' },
          { target: 'waiting', actions: assign({ tries: ({ context }) => context.tries + 1 }) },
        ],
      },
    },
    waiting: { after: { pause: 'running' } },
    done: { type: 'final' },
    lost: { type: 'final' },
  },
  output: ({ context }) => ({ id: context.id, tries: context.tries }),
})

const queue: Example = {
  of: 'queue-worker, pattern-per-item-error-handling',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { waiting: number[]; results: unknown[] } },
    actors: { errand },
  }).createMachine({
    id: 'queue',
    context: { waiting: [0, 1, 2], results: [] },
    initial: 'sending',
    states: {
      sending: {
        entry: enqueueActions(({ context, enqueue }) => {
          for (const failures of context.waiting.slice(0, 1)) {
            enqueue.spawnChild('errand', { id: `errand-${failures}`, input: { id: `${failures}`, failures } })
          }
        }),
        always: { target: 'working', actions: assign({ waiting: ({ context }) => context.waiting.slice(1) }) },
      },
      working: {
        on: {
          'xstate.done.actor.*': [
            {
              guard: ({ context }) => context.waiting.length > 0,
              target: 'sending',
              actions: [
                assign({ results: ({ context, event }) => [...context.results, event.output] }),
                emit({ type: 'settled' }),
              ],
            },
            {
              target: 'drained',
              actions: assign({ results: ({ context, event }) => [...context.results, event.output] }),
            },
          ],
        },
      },
      drained: { type: 'final' },
    },
    output: ({ context }) => ({ results: context.results }),
  }),
  script: [HOUR, HOUR],
}

const team: Example = {
  of: 'actor-system',
  machine: setup({
    types: { ...anyEvent.types, context: {} as { told: unknown[] } },
    actors: {
      clerk: fromCallback(({ receive, sendBack }) => receive((event) => sendBack({ type: 'TOLD', by: event.type }))),
      sum: fromTransition((state: { n: number }, _: { type: string }) => ({ n: state.n + 1 }), { n: 0 }),
    },
  }).createMachine({
    id: 'team',
    context: { told: [] },
    entry: spawnChild('sum', { id: 'sum', systemId: 'till' }),
    invoke: { src: 'clerk', systemId: 'clerk' },
    initial: 'unpaid',
    states: {
      unpaid: {
        on: { PAY: { target: 'paid', actions: sendTo(({ system }) => system.get('clerk'), { type: 'NOTE' }) } },
      },
      paid: { on: { SHIP: { actions: ({ system }) => system.get('till').send({ type: 'ADD' }) } } },
    },
    on: { TOLD: { actions: assign({ told: ({ context, event }) => [...context.told, event.by] }) } },
  }),
  script: [{ type: 'PAY' }, { type: 'SHIP' }],
}

export const spawned: readonly Example[] = [
  deployment(0, []),
  deployment(1, [HOUR]),
  deployment(9, [HOUR, HOUR]),
  friends,
  actors,
  queue,
  team,
]
