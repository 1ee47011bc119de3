import { type AnyEventObject, type AnyStateMachine, fromPromise } from 'xstate'

/** What happens to a machine: an event; one for a child, by its id; milliseconds that pass; a sign from the surroundings. */
export type Step = AnyEventObject | { readonly child: string; readonly event: AnyEventObject } | number | 'tick'

export interface Example {
  /** The example of XState whose features this machine has, in the same shape; several, if they are of one shape. */
  readonly of: string
  readonly machine: AnyStateMachine
  /** What it spawns and does not name. */
  readonly spawned?: readonly AnyStateMachine[]
  readonly input?: unknown
  readonly script: readonly Step[]
}

/** Takes events of any type. */
export const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

/** Services that answer nothing, and that fail. */
export const ok = fromPromise(async () => {})
export const fails = (problem: string) => fromPromise(() => Promise.reject(new Error(problem)))

export const HOUR = 3_600_000

const listeners = new Set<() => void>()

/** Calls it with each `tick` of a script, in place of an interval or of somebody who types. */
export function onTick(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

export const tick = (): void => {
  for (const listener of [...listeners]) listener()
}

/** How many wait for a tick. */
export const waiting = (): number => listeners.size

/** What a promise waits for. */
export const nextTick = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const forget = onTick(() => {
      forget()
      resolve()
    })
    signal.addEventListener('abort', forget)
  })

const done: string[] = []

/** What an action does outside. */
export const does = (what: string) => (): void => void done.push(what)

/** What actions have done since the last call. */
export const effects = (): string[] => done.splice(0)
