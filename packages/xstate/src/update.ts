/** The one way in which an execution changes: load, decide, commit; on a conflict all of it again. */
import { copyExecution, type Execution, StoreConflict, stamp } from '@harel/store-base'
import { pause } from './concurrency.js'
import { outsideEffects, stepsAround } from './effect.js'
import { ControlRefused, TooManyConflicts } from './errors.js'
import type { Draft, Host } from './host.js'

/** The longest pause before another attempt, in seconds. */
const LONGEST = 0.5

/** How long to wait at the most, in seconds, after so many lost races. */
export const retryPause = (attempt: number): number => Math.min(LONGEST, 0.002 * 2 ** attempt)

/** What was decided on an execution; without a draft, nothing is written. */
export interface Decision<R> {
  readonly result: R
  readonly draft?: Draft
}

export interface Loaded {
  /** A copy of its own: whoever decides may change it. */
  readonly execution: Execution | undefined
  readonly processed: boolean
}

/**
 * Lets `decide` change an execution and writes that in one commit. Nothing is written if it throws.
 *
 * @param eventId  the event whose mark is looked up with the execution, if any
 * @throws ControlRefused in an action that would, in the end, wait for itself
 * @throws TooManyConflicts when others were faster in each of `maxConflicts` attempts
 */
export function update<R>(
  host: Host,
  id: string,
  eventId: string | undefined,
  decide: (loaded: Loaded) => Decision<R> | Promise<Decision<R>>,
): Promise<R> {
  const around = stepsAround()
  if (host.waits.leadTo(around, id)) {
    const reason = 'is in the middle of a step that would wait for this one; use raise or sendTo in its machine'
    return Promise.reject(new ControlRefused(id, reason))
  }
  const [waiting] = around
  const run = () => inTurn(host, id, eventId, decide)
  return waiting === undefined ? run() : host.waits.during(waiting, id, run)
}

function inTurn<R>(
  host: Host,
  id: string,
  eventId: string | undefined,
  decide: (loaded: Loaded) => Decision<R> | Promise<Decision<R>>,
): Promise<R> {
  return host.queue.run(id, async () => {
    const { maxConflicts } = host.settings
    for (let attempt = 1; ; attempt++) {
      const { execution, processed } =
        eventId === undefined
          ? { execution: await host.store.load(id), processed: false }
          : await host.store.loadForEvent(id, eventId)
      const own = execution === undefined ? undefined : copyExecution(execution)
      const { result, draft } = await decide({ execution: own, processed })
      if (draft === undefined || own === undefined) return result
      try {
        await write(host, own, draft)
        return result
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error
        if (attempt >= maxConflicts) throw new TooManyConflicts(id, attempt, error)
        await pause(retryPause(attempt) * host.settings.random(), host.signal)
      }
    }
  })
}

/** One commit of everything. What it enqueued is relayed from then on, without being waited for. */
export async function write(host: Host, execution: Execution, draft: Draft): Promise<void> {
  const now = host.settings.clock()
  stamp(execution, now)
  // By this others tell whether its sender should have delivered it already.
  const createdTime = new Date(now * 1000).toISOString()
  for (const { event } of draft.emits) event.createdTime ??= createdTime
  const { emits, spawns, timers, processedEventId, trace, step } = draft
  const seqs = await host.store.commit(execution, {
    emits,
    spawns,
    timers: [...timers.values()],
    processedEventId,
    trace,
    step,
  })
  // What follows from the commit of an action's own call is no part of the step in which the action runs.
  outsideEffects(() => host.committed({ execution, draft, seqs }))
}
