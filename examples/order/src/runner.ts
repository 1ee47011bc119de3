/**
 * How a transition becomes one commit. XState says what the next state is and what has to be done; the store writes
 * both, together with the id of the event, or neither.
 */
import {
  type Emit,
  type Execution,
  type ExecutionStore,
  type HarelEvent,
  isFinished,
  type JsonValue,
  newEvent,
  newExecution,
  type Spawn,
  StoreConflict,
  stamp,
  type TimerOp,
} from '@harel/store-base'
import { type AnyMachineSnapshot, type AnyStateMachine, initialTransition, type StateValue, transition } from 'xstate'
import { type Message, machines } from './machine.ts'

/** What the pure functions hand back; XState's own types know only a part of them. */
type Action =
  | { type: 'xstate.raise'; params: { id: string; delay: number | undefined } }
  | { type: 'xstate.cancel'; params: { sendId: string } }
  | { type: 'xstate.spawnChild'; params: { id: string; src: string; input: JsonValue } }
  | { type: 'xstate.stopChild' }
  | { type: 'tell'; params: Message }

/** Starts an execution. Somebody may have started it already: then nothing happens. */
export async function start(
  store: ExecutionStore,
  { machine, input, ...ids }: { id: string; parentId?: string; machine: string; input: JsonValue | undefined },
): Promise<void> {
  const execution = newExecution({ definitionId: machine, ...ids })
  try {
    await commit(store, execution, ...initialTransition(machineOf(execution), input))
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error
  }
}

/** Handles an event: exactly once, whoever delivers it and how often. False: there was nothing left to do. */
export async function handle(store: ExecutionStore, id: string, event: HarelEvent): Promise<boolean> {
  for (;;) {
    const { execution, processed } = await store.loadForEvent(id, event.id)
    if (execution === undefined) throw new Error(`${event.kind} is addressed to ${id}, which does not exist`)
    if (processed || isFinished(execution.status)) return false
    const machine = machineOf(execution)
    const snapshot = machine.resolveState(execution.context.xstate as { value: StateValue; context: unknown })
    try {
      await commit(store, execution, ...transition(machine, snapshot, { ...event.data, type: event.kind }), event)
      return true
    } catch (error) {
      // Another event of this execution was faster. Load what it has left and decide anew.
      if (!(error instanceof StoreConflict)) throw error
    }
  }
}

async function commit(
  store: ExecutionStore,
  execution: Execution,
  snapshot: AnyMachineSnapshot,
  actions: readonly { type: string }[],
  event?: HarelEvent,
): Promise<void> {
  const now = Date.now() / 1000
  const { timers, emits, spawns } = toChanges(execution, actions as readonly Action[], now)
  const finished = snapshot.status === 'done'
  if (finished && execution.parentId !== null) emits.push(doneEvent(execution, execution.parentId, snapshot.output))

  const from = execution.activePath
  execution.context = { xstate: { value: snapshot.value, context: snapshot.context } }
  execution.status = finished ? 'DONE' : 'RUNNING'
  execution.activePath = activePath(snapshot.value)
  execution.outcome = finished ? execution.activePath : null
  stamp(execution, now)

  await store.commit(execution, {
    timers,
    emits,
    spawns,
    ...(event && { processedEventId: event.id }),
    trace: {
      event_kind: event?.kind ?? 'xstate.init',
      event_id: event?.id ?? null,
      from_path: from,
      to_path: execution.activePath,
      active: leaves(snapshot.value),
      timestamp: now,
      worker: process.pid,
    },
  })
}

/** What XState wants done, in the terms of a commit. */
function toChanges(execution: Execution, actions: readonly Action[], now: number) {
  const timers: TimerOp[] = []
  const emits: Emit[] = []
  const spawns: Spawn[] = []
  for (const action of actions) {
    switch (action.type) {
      case 'xstate.raise': // A delayed transition; its id is the type of the event that takes it.
        if (action.params.delay !== undefined) {
          timers.push({ action: 'schedule', path: action.params.id, fireAt: now + action.params.delay / 1000 })
        }
        break
      case 'xstate.cancel':
        timers.push({ action: 'cancel', path: action.params.sendId })
        break
      case 'xstate.spawnChild': {
        const { id, src, input } = action.params
        spawns.push({ childId: `${execution.id}:${id}`, rootPath: '', context: { machine: src, input } })
        break
      }
      case 'xstate.stopChild': // It has ended by itself: nothing here leaves a state whose child still runs.
        break
      case 'tell': {
        const { to, kind, data } = action.params
        emits.push({ targetId: to, event: newEvent({ kind, data }) })
        break
      }
      default:
        throw new Error(`no store knows what to do with ${(action satisfies never as { type: string }).type}`)
    }
  }
  return { timers, emits, spawns }
}

/** What XState itself sends to a machine whose invoked machine has come to its end. */
const doneEvent = ({ id }: Execution, parentId: string, output: unknown): Emit => ({
  targetId: parentId,
  event: newEvent({
    kind: `xstate.done.actor.${id.slice(parentId.length + 1)}`,
    data: { output: output as JsonValue },
  }),
})

function machineOf({ id, definitionId }: Execution): AnyStateMachine {
  const machine = machines[definitionId]
  if (machine === undefined) throw new Error(`${id} is a ${definitionId}, of which there is no machine`)
  return machine
}

/** The path of the active state; of a parallel state, the path of that state itself. */
function activePath(value: StateValue): string {
  if (typeof value === 'string') return value
  const [[key, inner] = [], ...others] = Object.entries(value)
  if (key === undefined || inner === undefined || others.length > 0) return ''
  return [key, activePath(inner)].filter(Boolean).join('.')
}

/** The paths of all active states that have no states inside. */
function leaves(value: StateValue): string[] {
  if (typeof value === 'string') return [value]
  return Object.entries(value).flatMap(([key, inner = '']) => leaves(inner).map((leaf) => `${key}.${leaf}`))
}
