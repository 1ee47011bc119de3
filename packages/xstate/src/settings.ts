import {
  checkCount,
  checkFlag,
  checkFunction,
  checkMembers,
  InvalidArgument,
  MAX_DELAY,
  newId,
} from '@harel/store-base'
import type { AnyStateMachine } from 'xstate'
import { guarded } from './concurrency.js'
import type { PersistedMachine } from './snapshot.js'

/** Where an execution stands whose version this runner does not have, and where it is to go. */
export interface Migration {
  readonly executionId: string
  readonly definitionId: string
  readonly from: string
  readonly to: string
}

export interface RunnerOptions<Machines extends readonly AnyStateMachine[] = readonly AnyStateMachine[]> {
  /**
   * The machines to run, with those that they invoke by name. Of several versions of one id, the last is for new
   * executions; the others are for those that were created with them.
   */
  machines: Machines
  /**
   * Brings an execution of a version that is not among the machines to the newest one. What it returns is stored with
   * the next step. Undefined, or no `migrate`: the execution stays as it is and `UnknownMachine` is raised. What has not
   * been started yet has nothing to migrate: with a `migrate`, it starts with the newest version.
   */
  migrate?: (stored: PersistedMachine, migration: Migration) => PersistedMachine | undefined
  /** Whether a throwing action makes the execution FAILED, or the call fail with nothing written. Default: `fail`. */
  onActionError?: 'fail' | 'raise'
  /** Whether `send` refuses a type that the machine has no transition for. Default: `pass` (XState ignores it). */
  unknownEvents?: 'pass' | 'refuse'
  /** Store a step of the trace with each event that a machine handles, its start included. Default: false. */
  trace?: boolean
  /** Who is named in the trace as the one who took a step. Default: a random id. */
  worker?: string
  /** How many entries are worked on at once. Default: 64. */
  concurrency?: number
  /** How many promises, callbacks and observables this process runs at once; others wait. Default: 256. */
  maxInvoked?: number
  /** How many lost races for one execution end in `TooManyConflicts`. Default: 20. */
  maxConflicts?: number
  /** How many attempts at delivering an entry, or at an invoked promise, there are before it is given up. Default: 8. */
  maxAttempts?: number
  /**
   * For how long, in seconds, an invoked promise is left to the process that runs it; renewed while it does.
   * At least 0.05. Default: 10.
   */
  lease?: number
  /** How old, in seconds, an entry must be before others than its writer relay it. Default: 2. */
  grace?: number
  /** The longest pause between two sweeps of an idle fleet, in seconds. Default: 2. */
  maxPause?: number
  /** How many entries a sweep reads at once. Default: 256. */
  pageSize?: number
  /** Epoch seconds. Default: the system's clock. */
  clock?: () => number
  /** From 0 to 1, for jitter. Default: `Math.random`. */
  random?: () => number
  /** What `log()` actions write to. Default: `console.log`. */
  logger?: (...values: unknown[]) => void
  /** Called with what goes wrong behind the scenes; none of it is lost by that. Default: `console.warn`. */
  onWarning?: (message: string, cause?: unknown) => void
}

/** The options with their defaults. */
export interface Settings extends Required<Omit<RunnerOptions, 'machines' | 'migrate'>> {
  readonly migrate: RunnerOptions['migrate']
}

/** What the timers of Node hold; a longer delay would be none. */
const MOST_SECONDS = MAX_DELAY / 1000

/** Renewed three times while it lasts, a shorter one would be lost before it is stored. */
const LEAST_LEASE = 0.05

const seconds = (name: string, value: number): number => {
  if (typeof value === 'number' && value > 0 && value <= MOST_SECONDS) return value
  throw new InvalidArgument(name, value, `a positive number of seconds, at most ${MOST_SECONDS}`)
}

function checkLease(value: number): number {
  if (seconds('lease', value) >= LEAST_LEASE) return value
  throw new InvalidArgument('lease', value, `at least ${LEAST_LEASE} seconds`)
}

export const oneOf = <T extends string>(name: string, value: T, allowed: readonly T[]): T => {
  if (allowed.includes(value)) return value
  throw new InvalidArgument(name, value, `one of ${allowed.join(', ')}`)
}

const text = (name: string, value: string): string => {
  if (typeof value === 'string' && value.isWellFormed()) return value
  throw new InvalidArgument(name, value, 'a string without lone surrogates')
}

/** In epoch seconds this is the year 5138, in milliseconds it was in 1973. */
const LATEST = 1e11

/** What a `Date` holds, in seconds. */
const END_OF_TIME = 8.64e12

function checkClock(clock: unknown): () => number {
  const given = checkFunction('clock', clock as (() => number) | undefined)
  if (given === undefined) return () => Date.now() / 1000
  const now = (latest: number): number => {
    const time: unknown = given()
    if (typeof time === 'number' && time >= 0 && time < latest) return time
    throw new InvalidArgument('clock', time, 'a function that returns epoch seconds')
  }
  now(LATEST)
  // At each call: a time that is none must not be stored by one that goes wrong later.
  return () => now(END_OF_TIME)
}

function checkRandom(random: unknown): () => number {
  const given = checkFunction('random', random as (() => number) | undefined) ?? Math.random
  const first: unknown = given()
  if (typeof first === 'number' && first >= 0 && first <= 1) return given
  throw new InvalidArgument('random', first, 'a function that returns numbers from 0 to 1')
}

const MEMBERS = (
  'machines migrate onActionError unknownEvents trace worker concurrency maxInvoked maxConflicts maxAttempts ' +
  'lease grace maxPause pageSize clock random logger onWarning'
).split(' ')

/** @throws InvalidArgument also for a member that nobody would look at: a misspelt option must not mean its default */
export function checkSettings(options: RunnerOptions): Settings {
  checkMembers('options', options, MEMBERS)
  if (!Array.isArray(options.machines)) throw new InvalidArgument('machines', options.machines, 'an array of machines')
  const warn = checkFunction('onWarning', options.onWarning) ?? ((...shown) => console.warn(...shown))
  // Only what is absent has a default: null is nothing that was asked for.
  const { onActionError = 'fail', unknownEvents = 'pass', trace = false, worker = newId() } = options
  const { concurrency = 64, maxInvoked = 256, maxConflicts = 20, maxAttempts = 8, pageSize = 256 } = options
  const { lease = 10, grace = 2, maxPause = 2 } = options
  return {
    migrate: checkFunction('migrate', options.migrate),
    onActionError: oneOf('onActionError', onActionError, ['fail', 'raise']),
    unknownEvents: oneOf('unknownEvents', unknownEvents, ['pass', 'refuse']),
    trace: checkFlag('trace', trace),
    worker: text('worker', worker),
    concurrency: checkCount('concurrency', concurrency, 1),
    maxInvoked: checkCount('maxInvoked', maxInvoked, 1),
    maxConflicts: checkCount('maxConflicts', maxConflicts, 1),
    maxAttempts: checkCount('maxAttempts', maxAttempts, 1),
    lease: checkLease(lease),
    grace: seconds('grace', grace),
    maxPause: seconds('maxPause', maxPause),
    pageSize: checkCount('pageSize', pageSize, 1, 1000),
    clock: checkClock(options.clock),
    random: checkRandom(options.random),
    logger: checkFunction('logger', options.logger) ?? console.log,
    onWarning: (...found) => guarded(() => warn(...found)),
  }
}
