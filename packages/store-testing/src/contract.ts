import { AssertionError } from 'node:assert'
import {
  asyncStore,
  type ExecutionStore,
  type Numbers,
  type OnWarning,
  type StoreCapabilities,
  type SyncExecutionStore,
} from '@harel/store-base'
import { cleanUp } from './fixtures.js'

/** How a store is to be opened. */
export interface OpenOptions {
  /** The prefix of all names in the database. Stores that share nothing may ignore it. */
  prefix: string
  /** How many steps of a trace are kept; absent: the store's own default, 200. */
  traceMax?: number
  onWarning?: OnWarning
  numbers?: Numbers
}

/** Raw access to the database under one prefix, past the store. Each one that is there makes more checks run. */
export interface Probes {
  /** The payload of an execution as it is stored. */
  executionText?(id: string): Promise<string | undefined>
  /** Stores an execution as another program would: this payload, nothing beside it. */
  insertExecutionText?(id: string, version: number, text: string): Promise<void>
  /** Stores an undelivered event as another program would. */
  insertOutboxText?(targetId: string, text: string): Promise<void>
  /** How many rows (keys, documents, …) there are of each kind. Counters from which seqs are taken are left out. */
  rows?(): Promise<Record<string, number>>
  /** The names of all tables, collections and the like in the database, whatever their prefix. */
  tables?(): Promise<readonly string[]>
}

/** How long the random sequences are and how many. `HAREL_TEST_SEED` and `HAREL_TEST_RUNS` go before these. */
export interface ModelOptions {
  /** The seed of the first sequence; each has its own. Default: another one each time; a failure names it. */
  seed?: number
  /** How many sequences. Default: 100. */
  runs?: number
  /** The most commands in a sequence. Default: 60. */
  commands?: number
  /** No sequence is begun after so many milliseconds; a failure is shrunk for 1500 more. Default: 3000. */
  milliseconds?: number
}

/** A synchronous store is adapted with `asyncStore`. */
export type AnyStore = ExecutionStore | SyncExecutionStore

type OpenHandle = (options?: Partial<OpenOptions>) => Promise<ExecutionStore>

/** What a check works on. */
export interface CheckContext {
  readonly store: ExecutionStore
  /** The store as it was opened: synchronous where `store` is the adapted form. */
  readonly original: AnyStore
  readonly capabilities: StoreCapabilities
  /** Under which `store` was opened. */
  readonly prefix: string
  /** Stands in front of every id of the check, so that it works on a database in use. */
  readonly ns: string
  /** With which `store` was opened. */
  readonly traceMax: number
  /**
   * Opens another handle; on the same database where `capabilities.shared`, and under the same prefix unless another
   * one is given. The check need not close it. Fails unless `canOpen`.
   */
  readonly open: OpenHandle
  readonly canOpen: boolean
  readonly probes: Probes
  readonly model: ModelOptions
}

/** What decides whether a check is run. */
interface Facts extends Pick<CheckContext, 'capabilities' | 'probes' | 'canOpen'> {
  readonly synchronous: boolean
}

const NEEDS = {
  copies: ({ capabilities }: Facts) => capabilities.identity && 'load returns the very object that was committed',
  identity: ({ capabilities }: Facts) => !capabilities.identity && 'load returns copies',
  ordered: ({ capabilities }: Facts) => !capabilities.ordered && 'listings have no order',
  keyPaging: ({ capabilities }: Facts) => capabilities.paging !== 'key' && 'listings go on at an offset',
  dedupeForever: ({ capabilities }: Facts) =>
    capabilities.dedupe !== 'forever' && `only ${capabilities.dedupe} event ids are remembered`,
  open: ({ canOpen }: Facts) => !canOpen && 'there is no way to open another handle',
  shared: ({ capabilities, canOpen }: Facts) =>
    !canOpen
      ? 'there is no way to open another handle'
      : !capabilities.shared && 'every handle has a database of its own',
  durable: ({ capabilities }: Facts) => !capabilities.durable && 'nothing outlives the store',
  transactions: ({ capabilities }: Facts) => !capabilities.transactions && 'the store has no transactions',
  asynchronous: ({ synchronous }: Facts) =>
    synchronous && 'the transactions of a synchronous store take synchronous work',
  executionText: ({ probes }: Facts) => probes.executionText === undefined && 'no probe for stored payloads',
  insertExecutionText: ({ probes }: Facts) =>
    probes.insertExecutionText === undefined && 'no probe that stores a payload',
  insertOutboxText: ({ probes }: Facts) => probes.insertOutboxText === undefined && 'no probe that stores an event',
  rows: ({ probes }: Facts) => probes.rows === undefined && 'no probe that counts rows',
}

/** What a check takes for granted. */
export type Need = keyof typeof NEEDS

/** One guarantee of a store. */
export interface Check {
  /** The guarantee, as a sentence. */
  readonly title: string
  /** Rows of `docs/reports.md` that it tries. */
  readonly reports?: readonly string[]
  /** Items of Python harel's list of weaknesses of which it shows the store to be free. */
  readonly weaknesses?: readonly number[]
  readonly needs?: readonly Need[]
  /** Throws an `AssertionError`, or lets an error of the store pass, when the guarantee is not kept. */
  run(context: CheckContext): Promise<void>
}

/** Guarantees that belong together. */
export interface Contract {
  readonly name: string
  readonly checks: readonly Check[]
}

/** The guarantee with what it answers to: "… (B01, weakness 14)". */
export function titleOf({ title, reports = [], weaknesses = [] }: Check): string {
  const answers = [...reports, ...weaknesses.map((item) => `weakness ${item}`)]
  return answers.length === 0 ? title : `${title} (${answers.join(', ')})`
}

/** Why a check says nothing about a store; undefined when it does. */
export function reasonToSkip(check: Check, facts: Facts): string | undefined {
  for (const need of check.needs ?? []) {
    const reason = NEEDS[need](facts)
    if (reason !== false) return reason
  }
  return undefined
}

/** What an error says, and what the errors say that have led to it: whoever only prints the first must see the last. */
const messagesOf = (error: unknown): string[] =>
  error instanceof Error
    ? [error.message, ...(error.cause === undefined ? [] : messagesOf(error.cause))]
    : [String(error)]

/** Runs one check; whatever goes wrong becomes an `AssertionError` that names the guarantee. */
export async function runCheck(contract: Contract, check: Check, context: CheckContext): Promise<void> {
  try {
    await check.run(context)
  } catch (error) {
    const message = messagesOf(error).join('\n')
    const named = new AssertionError({ message: `${contract.name}: ${check.title}: ${message}` })
    if (error instanceof AssertionError) {
      named.actual = error.actual
      named.expected = error.expected
    }
    named.cause = error
    throw named
  } finally {
    // A check may have closed the store, or broken it for good.
    await cleanUp(context.store, context.ns).catch(() => {})
  }
}

/** Where and how a contract is to be run by hand. */
export interface ContractOptions {
  /**
   * Stands in front of all ids, so that the contract can run on a database in use. What it made is removed, except for
   * definitions, which nothing removes: give another one each time.
   */
  ns?: string
  /** Under which the store was opened. Default: `harel`. */
  prefix?: string
  /** With which the store was opened. Default: 200. */
  traceMax?: number
  /** Overrules `capabilities.ordered`. */
  ordered?: boolean
  /** Opens another handle; what needs one is skipped otherwise. */
  open?: OpenHandle
  probes?: Probes
  model?: ModelOptions
}

/** A check that was not run, and why. */
export interface Skipped {
  title: string
  reason: string
}

/** Whether a store is synchronous. */
export const isSynchronous = (store: AnyStore): store is SyncExecutionStore => !(Symbol.asyncDispose in store)

const noHandle: OpenHandle = () => Promise.reject(new Error('no way to open another handle was given'))

/** The function that runs a contract on one store, check by check, and throws at the first guarantee not kept. */
export const assertionOf =
  (contract: Contract) =>
  async (original: AnyStore, options: ContractOptions = {}): Promise<Skipped[]> => {
    const synchronous = isSynchronous(original)
    const store = synchronous ? asyncStore(original) : original
    const { ns = '', prefix = 'harel', traceMax = 200, open = noHandle, probes = {}, model = {} } = options
    const capabilities = { ...store.capabilities, ordered: options.ordered ?? store.capabilities.ordered }
    const canOpen = options.open !== undefined
    const given = { store, original, capabilities, prefix, traceMax, open, canOpen, probes, model }
    const skipped: Skipped[] = []
    for (const [index, check] of contract.checks.entries()) {
      const reason = reasonToSkip(check, { ...given, synchronous })
      if (reason === undefined) await runCheck(contract, check, { ...given, ns: `${ns}${contract.name}-${index}-` })
      else skipped.push({ title: check.title, reason })
    }
    return skipped
  }
