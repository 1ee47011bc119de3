/** The same script with XState alone, and with a runner that is replaced before each step. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Execution, ExecutionStore } from '@harel/store-base'
import { DurableRunner } from '@harel/xstate'
import { expect } from 'vitest'
import { type AnyActorRef, type AnyMachineSnapshot, createActor, SimulatedClock } from 'xstate'
import { openStore, stored, TestClock } from '../helpers.js'
import { type Example, effects, type Step, tick, waiting } from './example.js'

const ID = 'example'

/** What can be seen of a machine after a step. */
interface Seen {
  readonly status: string
  readonly value: unknown
  readonly context: unknown
  readonly output: unknown
  readonly tags: unknown
  readonly meta: unknown
  /** Those that are machines as they are, of others whether they are there; of no meaning once the machine has ended. */
  readonly children: { [id: string]: Seen | null }
}

/** After one step. */
interface Moment {
  readonly seen: Seen
  readonly emitted: unknown[]
  readonly effects: string[]
  readonly waiting: number
}

const isRef = (value: object): value is AnyActorRef => 'sessionId' in value && 'send' in value

/** XState counts the actors without an id through a whole system, the runner those of one machine. */
const named = (id: string): string => id.replace(/^x[:.]\d+$/, 'unnamed')

/** As JSON, with actors by their ids. */
function plain(value: unknown): unknown {
  if (value instanceof Error) return { name: value.name, message: value.message }
  if (typeof value !== 'object' || value === null) return value
  if (isRef(value)) return { actor: named(value.id) }
  if (Array.isArray(value)) return value.map(plain)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members.map(([key, member]) => [key, plain(member)]))
}

const look = (snapshot: AnyMachineSnapshot, status: string, children: Seen['children']): Seen => ({
  status,
  value: snapshot.value,
  context: plain(snapshot.context),
  output: plain(snapshot.output),
  tags: [...snapshot.tags].sort(),
  meta: snapshot.getMeta(),
  children: status === 'active' ? children : {},
})

const isMachineSnapshot = (snapshot: object): snapshot is AnyMachineSnapshot => 'machine' in snapshot

function seenInXState(snapshot: AnyMachineSnapshot): Seen {
  const children = Object.entries(snapshot.children as { [id: string]: AnyActorRef | undefined }).flatMap(
    ([id, ref]) => {
      const inner: object | undefined = ref?.getSnapshot()
      if (inner === undefined) return []
      return [[named(id), isMachineSnapshot(inner) ? seenInXState(inner) : null] as const]
    },
  )
  return look(snapshot, snapshot.status, Object.fromEntries(children))
}

/** Until what has been begun is done, but for what waits for a tick. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

const isForChild = (step: Step): step is Extract<Step, { child: string }> => typeof step === 'object' && 'child' in step

/** What XState itself makes of it, after the start and after each step. */
export async function inXState({ machine, input, script }: Example): Promise<Moment[]> {
  const clock = new SimulatedClock()
  const emitted: unknown[] = []
  const actor = createActor(machine, { id: ID, clock, input, logger: () => {} })
  actor.on('*', (event) => void emitted.push(event))
  // Without an observer XState reports errors as uncaught.
  actor.subscribe({ error: () => {} })
  const moments: Moment[] = []
  const note = async (): Promise<void> => {
    await settle()
    const seen = seenInXState(actor.getSnapshot())
    moments.push({ seen, emitted: emitted.splice(0), effects: effects().sort(), waiting: waiting() })
  }
  actor.start()
  await note()
  for (const step of script) {
    if (step === 'tick') tick()
    else if (typeof step === 'number') clock.increment(step)
    else if (isForChild(step)) actor.getSnapshot().children[step.child]?.send(step.event)
    else actor.send(step)
    await note()
  }
  actor.stop()
  return moments
}

const STATUS: { [status: string]: string } = { RUNNING: 'active', DONE: 'done', FAILED: 'error' }

interface Runner {
  snapshot(id: string): Promise<AnyMachineSnapshot>
}

async function seenInStore(store: ExecutionStore, runner: Runner, { id, status, context }: Execution): Promise<Seen> {
  const children: { [id: string]: Seen | null } = {}
  const known = (context.xstate as { children: { [actorId: string]: { id: string } } }).children
  for (const [actorId, child] of Object.entries(known)) {
    const inner = await stored(store, child.id)
    children[named(actorId)] = inner.definitionId === 'harel.invoked' ? null : await seenInStore(store, runner, inner)
  }
  return look(await runner.snapshot(id), STATUS[status] ?? status, children)
}

/** The same on runners, each of which sees one step. @param moments what XState has made of it */
export async function onRunners({ machine, spawned = [], input, script }: Example, moments: Moment[]): Promise<void> {
  const store = await openStore()
  const clock = new TestClock()
  const machines = [machine, ...spawned]
  for (const [n, moment] of moments.entries()) {
    const warnings: unknown[] = []
    const onWarning = (...found: unknown[]) => void warnings.push(found)
    await using runner = new DurableRunner(store, { machines, clock: clock.read, logger: () => {}, onWarning })
    const emitted: unknown[] = []
    runner.on('*', (event) => void emitted.push(event))
    /** Lets it work until this is so, and stays so; meanwhile far less than an hour passes. */
    const until = async <T>(now: () => T | Promise<T>, expected: T): Promise<void> => {
      for (let turn = 0, matches = 0; matches < 2; turn++) {
        await runner.settled()
        await settle()
        const found = await now()
        matches = isDeepStrictEqual(found, expected) ? matches + 1 : 0
        if (turn === 200) expect({ step: n, warnings, found }).toEqual({ step: n, warnings: [], found: expected })
        // What waits for a real moment, as somebody who has lost a race does, gets it.
        if (turn > 50) await sleep(10)
        clock.now += 1
        await runner.sweep()
      }
    }
    const step = script[n - 1]
    if (step === undefined) await runner.create(machine.id, { id: ID, input })
    else {
      await until(waiting, moments[n - 1]?.waiting ?? 0)
      if (step === 'tick') tick()
      else if (typeof step === 'number') clock.now += step / 1000
      else if (isForChild(step)) await runner.send(`${ID}:${step.child}`, step.event)
      else await runner.send(ID, step)
    }
    const did: string[] = []
    const now = async (): Promise<Moment> => {
      did.push(...effects())
      const seen = await seenInStore(store, runner, await stored(store, ID))
      return { seen, emitted: [...emitted], effects: did.toSorted(), waiting: waiting() }
    }
    await until(now, moment)
  }
}
