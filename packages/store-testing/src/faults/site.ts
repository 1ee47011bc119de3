import { asyncStore, type ExecutionStore, type StoreCapabilities } from '@harel/store-base'
import { isSynchronous } from '../contract.js'
import { cleanUp } from '../fixtures.js'
import { type Audit, audit, isWhole } from './audit.js'
import { Ledger } from './ledger.js'
import { PATIENCE_MS, settled } from './patience.js'
import type { Random } from './random.js'
import { type StreamOptions, type Written, writeStream } from './stream.js'
import { type OpenForFaults, WriterProcess } from './writer-process.js'

/** A store, and what can be broken around it. What cannot be broken is not tried. */
export interface UnderFaults {
  readonly capabilities: Pick<StoreCapabilities, 'shared'>
  /** Opens a store on the one database of this run. */
  readonly open: OpenForFaults
  /** Where the database is, for `open`: the URL of a server, the path of a file. In front of a server stands a proxy. */
  readonly address?: () => string
  /** What clients speak with the server at that address, `tcp` if not HTTP; absent: no server is there. */
  readonly speaks?: 'tcp' | 'http'
  /** A server of its own, as `ServerProcess` is: ends it with SIGKILL, starts it again on the same port and data. */
  readonly server?: { kill(): Promise<void>; restart(): Promise<void> }
  /** A program that calls `runWriter(open)`, to be run and killed as a process of its own. */
  readonly program?: string | URL
  /** Default: `harel`. The scenario `opening` adds `_` and its seed. */
  readonly prefix?: string
  /** How long any call may take, `close` included, before it counts as never ending, in milliseconds. Default: 60000. */
  readonly patienceMs?: number
}

/** How many faults there were, and what was found afterwards. */
export interface Outcome extends Audit {
  faults: number
}

/** Breaks something while a stream is written; resolves when it is whole again, or when the stream is over. */
export type Fault = (over: Promise<unknown>) => Promise<unknown>

const TRACE_MAX = 20

export interface SiteOptions {
  readonly under: UnderFaults
  readonly seed: number
  /** Told after each acknowledged commit how many there are. */
  readonly progress?: ((acknowledged: number) => void) | undefined
}

/** A database under faults, and the notes of those who write to it. */
export class Site {
  readonly ledger: Ledger
  readonly ns: string
  readonly #under: UnderFaults
  readonly #opened: ExecutionStore[] = []
  #direct: Promise<ExecutionStore> | undefined

  private constructor({ under, seed, progress }: SiteOptions) {
    this.ledger = new Ledger(progress)
    this.#under = under
    this.ns = `faults-${seed}-`
  }

  /**
   * What comes of this on a site of its own, whose stores are closed afterwards.
   *
   * @param play returns the number of faults
   * @throws what it throws, and Error when a store does not close
   */
  static async run(options: SiteOptions, play: (site: Site) => Promise<number>): Promise<Outcome> {
    const site = new Site(options)
    const [played] = await Promise.allSettled([play(site).then((faults) => site.#outcome(faults))])
    const [closed] = await Promise.allSettled([site.#close()])
    if (played.status === 'fulfilled' && closed.status === 'fulfilled') return played.value
    const failures = [played, closed].flatMap((part) => (part.status === 'rejected' ? [part.reason] : []))
    // A failure to close may follow from the other one, and must not hide it.
    throw failures.length === 1 ? failures[0] : new AggregateError(failures, failures.map(String).join('; '))
  }

  /** Another store, at another address of the server. */
  async open(address = this.#under.address?.()): Promise<ExecutionStore> {
    const store = await settled(openOn(this.#under, address), 'opening', this.#patienceMs)
    this.#opened.push(store)
    return store
  }

  /** A store that reaches the database without faults, opened when it is first wanted. */
  direct(): Promise<ExecutionStore> {
    this.#direct ??= this.open()
    return this.#direct
  }

  readonly record: Ledger['record'] = (note) => this.ledger.record(note)

  write(store: Written, options: Omit<StreamOptions, 'ns'>): Promise<void> {
    return writeStream(store, this.record, { ns: this.ns, patienceMs: this.#patienceMs, ...options })
  }

  /**
   * A process that writes to the database.
   *
   * @param waits it opens its store when it is given leave
   */
  start(program: string | URL, options: Omit<StreamOptions, 'ns'>, waits = false): WriterProcess {
    const { ns, record } = this
    const open = openOptions(this.#under, this.#under.address?.())
    return new WriterProcess(program, { ns, patienceMs: this.#patienceMs, ...options, open, waits }, record)
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

  async #outcome(faults: number): Promise<Outcome> {
    const store = await this.direct()
    const outcome = await audit(store, this.ledger, this.ns, TRACE_MAX)
    if (isWhole(outcome)) await cleanUp(store, this.ns)
    return { faults, ...outcome }
  }

  get #patienceMs(): number {
    return this.#under.patienceMs ?? PATIENCE_MS
  }

  /** @throws Error when a store does not close */
  async #close(): Promise<void> {
    await Promise.all(this.#opened.map((store) => settled(store.close(), 'close', this.#patienceMs)))
  }
}

const openOptions = ({ prefix = 'harel' }: UnderFaults, address: string | undefined) => ({
  prefix,
  traceMax: TRACE_MAX,
  ...(address !== undefined && { address }),
})

async function openOn(under: UnderFaults, address: string | undefined): Promise<ExecutionStore> {
  const store = await under.open(openOptions(under, address))
  return isSynchronous(store) ? asyncStore(store) : store
}
