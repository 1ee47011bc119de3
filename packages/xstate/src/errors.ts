import { describe, type Execution, StoreError } from '@harel/store-base'

/** What a program may branch on. Codes never change; messages may. */
export type RunnerErrorCode =
  | 'INVALID_MACHINE'
  | 'UNKNOWN_MACHINE'
  | 'UNKNOWN_EXECUTION'
  | 'UNKNOWN_EVENT'
  | 'MACHINE_CHANGED'
  | 'MIGRATION_FAILED'
  | 'ACTOR_NOT_RESTORABLE'
  | 'ACTION_FAILED'
  | 'TOO_MANY_CONFLICTS'
  | 'CONTROL_REFUSED'
  | 'PURGE_REFUSED'
  | 'RUNNER_CLOSED'

// Registered, so that an error made by another copy of this package (ESM beside CommonJS) is recognised.
const brand = Symbol.for('@harel/xstate/RunnerError')

/**
 * Every error that the runner raises on purpose; those of the store (`StoreError`) pass through it as they are. Branch on
 * `code` or with `instanceof`, which goes by the code and so works across copies of this package.
 */
export class RunnerError extends Error {
  /** The code of a subclass; undefined on `RunnerError` itself, which matches every code. */
  static readonly code: RunnerErrorCode | undefined = undefined

  readonly code: RunnerErrorCode

  constructor(code: RunnerErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    Object.defineProperty(this, brand, { value: true })
  }

  // biome-ignore-start lint/complexity/noThisInStatic: each subclass must look at its own code
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== 'object' || value === null || !(brand in value)) return false
    return this.code === undefined || (value as { code?: unknown }).code === this.code
  }
  // biome-ignore-end lint/complexity/noThisInStatic: end of the one place
}

/** A machine cannot be run durably, or two that differ have one id and version. */
export class InvalidMachine extends RunnerError {
  static override readonly code = 'INVALID_MACHINE'

  constructor(reason: string, cause?: unknown) {
    super('INVALID_MACHINE', reason, cause)
  }
}

/**
 * This runner was given no machine of that id (or not in that version, and no `migrate`), or the execution was written by
 * another program. Nothing was written.
 */
export class UnknownMachine extends RunnerError {
  static override readonly code = 'UNKNOWN_MACHINE'
  readonly definitionId: string
  readonly version: string | null

  constructor(definitionId: string, version: string | null, known: readonly string[], reason?: string) {
    const wanted = version === null ? '' : `, version ${describe(version)},`
    const missing = `no machine ${describe(definitionId)}${wanted} was given to this runner`
    super('UNKNOWN_MACHINE', reason ?? `${missing}; it has ${known.join('; ') || 'none'}`)
    this.definitionId = definitionId
    this.version = version
  }

  /** Of an execution in which nothing stands that this package would have written. */
  static foreign({ id, definitionId }: Pick<Execution, 'id' | 'definitionId'>): UnknownMachine {
    const whose = `execution ${JSON.stringify(id)} of ${describe(definitionId)}`
    const reason = `${whose} was not written by this package; whoever has written it can run it`
    return new UnknownMachine(definitionId, null, [], reason)
  }
}

/** There is no such execution. */
export class UnknownExecution extends RunnerError {
  static override readonly code = 'UNKNOWN_EXECUTION'
  readonly executionId: string

  constructor(executionId: string) {
    super('UNKNOWN_EXECUTION', `execution ${JSON.stringify(executionId)} does not exist`)
    this.executionId = executionId
  }
}

/** The machine has no transition for events of this type in any state (`unknownEvents: 'refuse'`). */
export class UnknownEvent extends RunnerError {
  static override readonly code = 'UNKNOWN_EVENT'
  readonly executionId: string
  readonly type: string

  constructor(executionId: string, type: string, known: readonly string[]) {
    const shown = JSON.stringify(type.length > 60 ? `${type.slice(0, 60)}…` : type)
    super(
      'UNKNOWN_EVENT',
      `${JSON.stringify(executionId)} knows no event ${shown}; it knows ${known.join(', ') || 'none'}`,
    )
    this.executionId = executionId
    this.type = type
  }
}

/** The machine no longer has a state that the stored execution is in. Nothing was written; `migrate` can move it. */
export class MachineChanged extends RunnerError {
  static override readonly code = 'MACHINE_CHANGED'
  readonly executionId: string
  /** The stored state, as JSON text. */
  readonly state: string
  /** The version that the execution was stored with. */
  readonly version: string

  constructor(executionId: string, definitionId: string, version: string, state: string, cause: unknown) {
    super(
      'MACHINE_CHANGED',
      `${JSON.stringify(executionId)} is in state ${state} of ${definitionId}, version ${version}, which the machine does not have`,
      cause,
    )
    this.executionId = executionId
    this.state = state
    this.version = version
  }
}

/** `migrate` has thrown. Nothing was written; the `cause` was thrown. */
export class MigrationFailed extends RunnerError {
  static override readonly code = 'MIGRATION_FAILED'
  readonly executionId: string

  constructor(executionId: string, reason: string, cause: unknown) {
    super('MIGRATION_FAILED', `migrate has failed for ${JSON.stringify(executionId)}: ${reason}`, cause)
    this.executionId = executionId
  }
}

/** What a machine has started or refers to could not be found again after a restart. Nothing was written. */
export class ActorNotRestorable extends RunnerError {
  static override readonly code = 'ACTOR_NOT_RESTORABLE'
  readonly executionId: string

  constructor(executionId: string, actor: string, reason: string) {
    super('ACTOR_NOT_RESTORABLE', `actor ${JSON.stringify(actor)} of ${JSON.stringify(executionId)}: ${reason}`)
    this.executionId = executionId
  }
}

/** A transition or an action has thrown, under `onActionError: 'raise'`. Nothing was written; the `cause` was thrown. */
export class ActionFailed extends RunnerError {
  static override readonly code = 'ACTION_FAILED'
  readonly executionId: string

  constructor(executionId: string, reason: string, cause: unknown) {
    super('ACTION_FAILED', `an action of ${JSON.stringify(executionId)} failed: ${reason}`, cause)
    this.executionId = executionId
  }
}

/** Other writers were faster each time. Nothing was written; the `cause` is the last conflict. */
export class TooManyConflicts extends RunnerError {
  static override readonly code = 'TOO_MANY_CONFLICTS'
  readonly executionId: string

  constructor(executionId: string, attempts: number, cause?: unknown) {
    super(
      'TOO_MANY_CONFLICTS',
      `${JSON.stringify(executionId)} was changed by others in each of ${attempts} attempts; nothing was written`,
      cause,
    )
    this.executionId = executionId
  }
}

/** The execution is no machine, or not in a status that the command acts on. Nothing was written. */
export class ControlRefused extends RunnerError {
  static override readonly code = 'CONTROL_REFUSED'
  readonly executionId: string

  constructor(executionId: string, reason: string) {
    super('CONTROL_REFUSED', `${JSON.stringify(executionId)} ${reason}`)
    this.executionId = executionId
  }
}

/** The tree cannot be purged: it has a parent, or some of it has not come to its end. Nothing was removed. */
export class PurgeRefused extends RunnerError {
  static override readonly code = 'PURGE_REFUSED'
  readonly executionId: string
  /** The members that stand in the way, ten at most. */
  readonly members: readonly string[]

  constructor(executionId: string, reason: string, members: readonly string[]) {
    super('PURGE_REFUSED', `${JSON.stringify(executionId)} is not purged: ${reason}`)
    this.executionId = executionId
    this.members = members
  }
}

/** The runner was closed before this call. */
export class RunnerClosed extends RunnerError {
  static override readonly code = 'RUNNER_CLOSED'

  constructor() {
    super('RUNNER_CLOSED', 'the runner is closed')
  }
}

/** Whether trying again may help before anybody has done anything about it, so that it is no attempt to be counted. */
export function isPassing(error: unknown): boolean {
  if (error instanceof StoreError) return error.retryable || PASSING.has(error.code)
  return error instanceof RunnerError && error.code === 'RUNNER_CLOSED'
}

/** Whether a store, or JSON, never takes what was to be written. */
export const isFinal = (error: unknown): boolean =>
  error instanceof StoreError && !error.retryable && FINAL.has(error.code)

const PASSING: ReadonlySet<string> = new Set(['STORE_CLOSED', 'OUTCOME_UNKNOWN'])
const FINAL: ReadonlySet<string> = new Set(['NOT_SERIALIZABLE', 'COMMIT_TOO_LARGE', 'INVALID_ARGUMENT'])
