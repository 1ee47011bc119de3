import { asyncStore, type ExecutionStore, type StoreCapabilities } from '@harel/store-base'
import { isSynchronous } from '../contract.js'
import { cleanUp } from '../fixtures.js'
import { type Audit, audit, isWhole } from './audit.js'
import { Ledger } from './ledger.js'
import type { Random } from './random.js'
import { type StreamOptions, type Written, writeStream } from './stream.js'
import type { OpenForFaults } from './writer-process.js'

/** A store, and what can be broken around it. What cannot be broken is not tried. */
export interface UnderFaults {
  readonly capabilities: Pick<StoreCapabilities, 'shared'>
  /** Opens a store on the one database of this run. */
  readonly open: OpenForFaults
  /** Where the database is, for `open`: the URL of a server, the path of a file. In front of a server stands a proxy. */
  readonly address?: () => string
  /** What clients speak with the server at that address, `tcp` if not HTTP; absent: no server is there. */
  readonly speaks?: 'tcp' | 'http'
  /** A server of its own: ends it with SIGKILL, and starts it again on the same port and data. */
  readonly server?: { kill(): Promise<void>; restart(): Promise<void> }
  /** A program that calls `runWriter(open)`, to be run and killed as a process of its own. */
  readonly program?: string | URL
  /** Default: `harel`. */
  readonly prefix?: string
}

/** How many faults there were, and what was found afterwards. */
export interface Outcome extends Audit {
  faults: number
}

/** Breaks something while a stream is written; resolves when it is whole again, or when the stream is over. */
export type Fault = (over: Promise<unknown>) => Promise<unknown>

export const TRACE_MAX = 20

/** A database under faults, and the notes of those who write to it. */
export class Site implements AsyncDisposable {
  readonly ledger = new Ledger()
  readonly ns: string
  /** Reaches the database without faults. */
  readonly store: ExecutionStore
  readonly #under: UnderFaults
  readonly #opened: ExecutionStore[]

  private constructor(under: UnderFaults, store: ExecutionStore, seed: number) {
    this.#under = under
    this.store = store
    this.#opened = [store]
    this.ns = `faults-${seed}-`
  }

  static async of(under: UnderFaults, seed: number): Promise<Site> {
    return new Site(under, await openOn(under, under.address?.()), seed)
  }

  /** Another store, at another address of the server. */
  async open(address = this.#under.address?.()): Promise<ExecutionStore> {
    const store = await openOn(this.#under, address)
    this.#opened.push(store)
    return store
  }

  readonly record: Ledger['record'] = (note) => this.ledger.record(note)

  write(store: Written, options: Omit<StreamOptions, 'ns'>): Promise<void> {
    return writeStream(store, this.record, { ns: this.ns, ...options })
  }

  /** Writes the stream, and has so many faults happen on the way, each of them one of these. */
  async disturb(stream: Promise<unknown>, commits: number, faults: readonly Fault[], count: number, random: Random) {
    let isOver = false
    const over = stream.finally(() => {
      isOver = true
    })
    const moments = Array.from({ length: count }, () => random.below(commits)).sort((a, b) => a - b)
    let happened = 0
    for (const moment of moments) {
      await Promise.race([this.ledger.reaches(moment), over])
      if (isOver) break
      await faults[random.below(faults.length)]?.(over)
      happened++
    }
    await over
    return happened
  }

  async outcome(faults: number): Promise<Outcome> {
    const outcome = await audit(this.store, this.ledger, this.ns, TRACE_MAX)
    if (isWhole(outcome)) await cleanUp(this.store, this.ns)
    return { faults, ...outcome }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#opened) await store.close()
  }
}

async function openOn(under: UnderFaults, address: string | undefined): Promise<ExecutionStore> {
  const { open, prefix = 'harel' } = under
  const store = await open({ prefix, traceMax: TRACE_MAX, ...(address !== undefined && { address }) })
  return isSynchronous(store) ? asyncStore(store) : store
}
