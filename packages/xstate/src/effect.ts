import { AsyncLocalStorage } from 'node:async_hooks'
import type { AnyActorRef, AnyEventObject } from 'xstate'

/** What an action, or an invoked promise, callback or observable, has at hand while it runs. */
export interface Effect {
  readonly executionId: string
  /**
   * The same in each attempt at the same effect, whoever makes it, and never used for another: give it to the service
   * that you call. An action has `<execution>:<event>:<n>:<name>`, with `:` and `%` in the event's id and in the name
   * written as in URLs, and `start` for the event that it starts with; what is invoked has the id of its execution.
   */
  readonly idempotencyKey: string
  /** 1 in the first attempt. Of actions only the invoked ones count: 1 always otherwise. */
  readonly attempt: number
  /** Aborted when the runner is closed, or when what was invoked has been stopped. */
  readonly signal: AbortSignal
}

/** What only the runner itself uses. */
export interface Step {
  send(ref: AnyActorRef, event: AnyEventObject): void
  /** The action has returned; what it has left running is no part of the step. */
  over: boolean
}

interface Running {
  readonly effect: Effect
  readonly step: Step | undefined
  /** The action that has called for it, and waits for it. */
  readonly outer: Running | undefined
}

const storage = new AsyncLocalStorage<Running>()

export const runEffect = <T>(effect: Effect, step: Step | undefined, run: () => T): T =>
  storage.run({ effect, step, outer: storage.getStore() }, run)

/** Runs what is no part of the effect that has led to it. */
export const outsideEffects = <T>(run: () => T): T => storage.exit(run)

/** The effect that is running. Throws outside of actions and of what machines invoke. */
export function currentEffect(): Effect {
  const { effect } = storage.getStore() ?? {}
  if (effect === undefined) throw new Error('currentEffect() has a value only while an action or an invoked actor runs')
  return effect
}

/** The step whose action is running. Throws outside of actions. */
export function currentStep(): Step {
  const { step } = storage.getStore() ?? {}
  if (step === undefined || step.over) {
    throw new Error('an execution can be sent events by its reference only from an action; use runner.send elsewhere')
  }
  return step
}

/** The executions whose actions are running here and would wait for what is called now, the innermost first. */
export function stepsAround(): string[] {
  const ids: string[] = []
  for (let at = storage.getStore(); at !== undefined; at = at.outer) {
    if (at.step?.over === false) ids.push(at.effect.executionId)
  }
  return ids
}
