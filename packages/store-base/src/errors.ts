import { describe, quote } from './describe.js'

/** What a program may branch on. Codes never change; messages may. */
export type StoreErrorCode =
  | 'STORE_CONFLICT'
  | 'EXECUTION_ALREADY_EXISTS'
  | 'INVALID_ARGUMENT'
  | 'INVALID_PREFIX'
  | 'INVALID_CURSOR'
  | 'NOT_SERIALIZABLE'
  | 'COMMIT_TOO_LARGE'
  | 'CORRUPT_RECORD'
  | 'SCHEMA_MISSING'
  | 'STORE_CLOSED'
  | 'STORE_UNAVAILABLE'
  | 'OUTCOME_UNKNOWN'

// Registered, so that an error made by another copy of this package (ESM beside CommonJS) is recognised.
const brand = Symbol.for('@harel/store-base/StoreError')

/**
 * Every error that a store raises on purpose. Branch on `code` or with `instanceof`, which goes by the code and so
 * works across copies of this package. A driver's own error is never raised; it is the `cause`.
 */
export class StoreError extends Error {
  /** The code of a subclass; undefined on `StoreError` itself, which matches every code. */
  static readonly code: StoreErrorCode | undefined = undefined

  readonly code: StoreErrorCode
  /** Whether the very same call may succeed later, with nothing changed by the caller. */
  readonly retryable: boolean

  constructor(code: StoreErrorCode, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    this.retryable = options.retryable ?? false
    Object.defineProperty(this, brand, { value: true })
  }

  // biome-ignore-start lint/complexity/noThisInStatic: each subclass must look at its own code
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== 'object' || value === null || !(brand in value)) return false
    return this.code === undefined || (value as { code?: unknown }).code === this.code
  }
  // biome-ignore-end lint/complexity/noThisInStatic: end of the one place
}

/** The stored version is not the one that the caller held; nothing was written. Load again and decide anew. */
export class StoreConflict extends StoreError {
  static override readonly code = 'STORE_CONFLICT'
  readonly executionId: string
  /** The version that the caller held. */
  readonly expected: number
  /** The stored version; null when there is no such execution. */
  readonly found: number | null

  constructor(executionId: string, expected: number, found: number | null) {
    const stored = found === null ? 'no execution is stored' : `version ${found} is stored`
    super('STORE_CONFLICT', `execution ${quote(executionId)} was held at version ${expected}, but ${stored}`)
    this.executionId = executionId
    this.expected = expected
    this.found = found
  }
}

/** The id of an execution to be created is taken. Raised by runners, never by a store. */
export class ExecutionAlreadyExists extends StoreError {
  static override readonly code = 'EXECUTION_ALREADY_EXISTS'
  readonly executionId: string

  constructor(executionId: string) {
    super('EXECUTION_ALREADY_EXISTS', `execution ${quote(executionId)} exists already`)
    this.executionId = executionId
  }
}

/** An argument is not what the method takes; nothing was read or written. */
export class InvalidArgument extends StoreError {
  static override readonly code = 'INVALID_ARGUMENT'
  /** Where the value stands, for example `changes.timers[0].path`. */
  readonly argument: string

  /**
   * @param shown how the message shows what was given; what may be a payload is shown by its kind alone
   * @param cause what was thrown when the value was read
   */
  constructor(argument: string, given: unknown, allowed: string, shown = describe(given), cause?: unknown) {
    super('INVALID_ARGUMENT', `${argument} must be ${allowed}; got ${shown}`, { cause })
    this.argument = argument
  }
}

/** The prefix of the tables or keys is not an identifier. */
export class InvalidPrefix extends StoreError {
  static override readonly code = 'INVALID_PREFIX'

  constructor(given: unknown) {
    super(
      'INVALID_PREFIX',
      `prefix must be a letter or _, then letters, digits or _, at most 30 characters; got ${describe(given)}`,
    )
  }
}

/** The cursor was not made by this listing: damaged, or made under other filters or by another kind of store. */
export class InvalidCursor extends StoreError {
  static override readonly code = 'INVALID_CURSOR'

  constructor(reason: string) {
    super('INVALID_CURSOR', `cursor ${reason}; start again without one`)
  }
}

/** A value cannot be stored as JSON exactly; nothing was written. */
export class NotSerializable extends StoreError {
  static override readonly code = 'NOT_SERIALIZABLE'
  /** Where the value stands, for example `context.items[3].price`. */
  readonly path: string

  constructor(path: string, reason: string, cause?: unknown) {
    super('NOT_SERIALIZABLE', `${path} ${reason}`, { cause })
    this.path = path
  }
}

/** The commit exceeds what the database takes at once; nothing was sent. */
export class CommitTooLarge extends StoreError {
  static override readonly code = 'COMMIT_TOO_LARGE'
  readonly size: number
  readonly limit: number

  constructor(unit: string, size: number, limit: number) {
    super('COMMIT_TOO_LARGE', `the commit has ${size} ${unit}, at most ${limit} are allowed`)
    this.size = size
    this.limit = limit
  }
}

/** A stored record cannot be read. It stays as it is. */
export class CorruptRecord extends StoreError {
  static override readonly code = 'CORRUPT_RECORD'
  /** Which record: an execution id, `outbox 17`, … */
  readonly record: string
  readonly reason: string

  constructor(record: string, reason: string) {
    super('CORRUPT_RECORD', `${record} cannot be read: ${reason}`)
    this.record = record
    this.reason = reason
  }
}

/** Tables or indexes are missing and the store may not create them. `printSchema()` shows what is needed. */
export class SchemaMissing extends StoreError {
  static override readonly code = 'SCHEMA_MISSING'
  readonly missing: readonly string[]

  constructor(missing: readonly string[]) {
    super('SCHEMA_MISSING', `the database lacks ${missing.join(', ')}; create them or open with createSchema: true`)
    this.missing = missing
  }
}

/** The store was closed before this call. */
export class StoreClosed extends StoreError {
  static override readonly code = 'STORE_CLOSED'

  constructor() {
    super('STORE_CLOSED', 'the store is closed')
  }
}

/** The database could not be reached or refused to work; nothing was written. */
export class StoreUnavailable extends StoreError {
  static override readonly code = 'STORE_UNAVAILABLE'

  /** @param options `retryable: false` where somebody has to change something first: a wrong password, for example */
  constructor(reason: string, cause?: unknown, { retryable = true } = {}) {
    super('STORE_UNAVAILABLE', reason, { retryable, cause })
  }
}

/** The reply to a commit was lost, and what was asked then did not tell whether it was applied. Load again and look. */
export class OutcomeUnknown extends StoreError {
  static override readonly code = 'OUTCOME_UNKNOWN'
  /** Reading back does not tell: what is read now may be otherwise after a restart of the database. */
  readonly untold: boolean

  constructor(reason: string, cause?: unknown, { untold = false } = {}) {
    super('OUTCOME_UNKNOWN', reason, { cause })
    this.untold = untold
  }
}
