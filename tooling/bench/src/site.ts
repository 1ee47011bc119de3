/** Where stores are measured, and with whom. */
import type { ExecutionStore } from '@harel/store-base'
import { HttpProxy, TcpProxy } from '@harel/store-testing/faults'
import { type Contender, PAGE } from './contender.ts'
import { compare, type Result } from './results.ts'
import type { Measure, Settings } from './settings.ts'
import { type Stock, stockUp } from './stock.ts'
import { BYTES } from './subjects.ts'
import { type Goal, measureVariants, type Variant } from './variants.ts'
import { WORKLOAD_NAMES, WORKLOADS, type Workload, type WorkloadName } from './workloads.ts'

/** A store and those beside it, on one database. */
export interface Opened extends AsyncDisposable {
  readonly contenders: readonly Contender[]
  /** One of the stores, to fill the database. */
  readonly store: ExecutionStore
}

export interface Site {
  readonly backend: string
  /** A new database, which is removed when it is disposed of. @param dir where files are made */
  database(dir: string): Promise<AsyncDisposable & { readonly url: string }>
  /** @param peers whether peers are wanted, which take their time to come */
  open(url: string, peers: boolean): Promise<Opened>
  /** What it speaks, where there is a socket. */
  readonly protocol?: 'tcp' | 'http'
  /**
   * Its server only stands in for the real one and is slow: larger payloads would measure nothing but that, and so
   * would long turns and many executions.
   */
  readonly isStandIn?: boolean
  /** Of `commit`, with payloads of `BYTES`. */
  readonly goals: readonly Goal[]
  /** How many times faster many commits at once should be than `beside` one by one. */
  readonly gains?: readonly Gain[]
}

export interface Gain {
  readonly at: number
  readonly variant: string
  readonly beside: string
  readonly min: number
}

/**
 * On a stand-in: so many executions are stored, enough for 256 at once and for pages; so many pages are relayed in a turn;
 * and as a turn waits for all that are under way, with more than so many at once there are no peers and half the turns, and
 * no round trips are counted.
 */
const STAND_IN = { executions: 300, pages: 6, atOnce: 16 }

export const isHeavy = ({ isStandIn }: Site, atOnce: number): boolean => isStandIn === true && atOnce > STAND_IN.atOnce

/** As many executions as such a site can do with. */
export const stockOn = ({ isStandIn }: Site, store: ExecutionStore, bytes: number): Promise<Stock> =>
  stockUp(store, bytes, isStandIn ? STAND_IN.executions : undefined)

/** What is done before round trips are counted. */
const WARM_UP = 2

const nameOf = (workload: WorkloadName, bytes: number): string =>
  bytes === BYTES ? workload : `${workload} ${bytes < 1000 ? `${bytes} B` : `${bytes / 1000} kB`}`

/** Those who have such a thing, at so many at once. */
export function variantsOf(
  contenders: readonly Contender[],
  { bind, pages = 0 }: Workload,
  stock: Stock,
  atOnce: number,
): Record<string, Variant> {
  const entries = contenders.flatMap(
    ({ name, role, does, from = 1, upTo, isSync, isElsewhere }): [string, Variant][] => {
      const run = bind(does, stock)
      if (run === undefined || atOnce < from || atOnce > (isSync ? 1 : (upTo ?? atOnce))) return []
      // An emptied outbox would measure nothing.
      const used = pages === 0 ? {} : { times: pages, prepare: () => stock.refill(pages) }
      return [[name, { role, run, isSync, isElsewhere, ...used }]]
    },
  )
  return Object.fromEntries(entries)
}

/** One workload at each concurrency and with each size of payload that is asked for. */
async function measureAt(
  site: Site,
  name: WorkloadName,
  { dir, seconds, concurrency, payload }: Settings,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  const { backend, database, open, protocol, isStandIn, goals, gains = [] } = site
  const usual: Workload = WORKLOADS[name]
  const workload = isStandIn && usual.pages !== undefined ? { ...usual, pages: STAND_IN.pages } : usual
  const sizes = workload.isSized && !isStandIn ? payload : [BYTES]
  const levels = workload.isAlone ? [1] : concurrency
  const results: Result[] = []
  for (const [nth, bytes] of sizes.entries()) {
    await using place = await database(dir)
    const openHere = (url: string) => open(url, workload.hasPeers === true)
    await using opened = await openHere(place.url)
    const stock = await stockOn(site, opened.store, bytes)
    await using counting = protocol === undefined ? undefined : await openCounting(protocol, place.url, openHere)
    for (const [index, atOnce] of levels.entries()) {
      const heavy = isHeavy(site, atOnce)
      const contenders = opened.contenders.filter(({ role }) => !heavy || role !== 'peer')
      const task = {
        ...{ backend, workload: nameOf(name, bytes), concurrency: atOnce, seconds: heavy ? seconds / 2 : seconds },
        goals: name === 'commit' && bytes === BYTES ? goals : [],
      }
      const progress = (part: number) => onProgress((nth + (index + part) / levels.length) / sizes.length)
      const measured = await measureVariants(variantsOf(contenders, workload, stock, atOnce), task, progress)
      const trips = heavy ? undefined : await counting?.roundTrips(workload, stock, atOnce)
      results.push(...measured.map((result) => ({ ...result, roundTrips: trips?.[result.variant] ?? null })))
    }
  }
  return name === 'commit' ? withGains(results, gains) : results
}

/** Measured at different levels, and so not in the same turns: less exact than other comparisons. */
const withGains = (results: readonly Result[], gains: readonly Gain[]): Result[] =>
  results.map((result) => {
    const reached = gains.flatMap(({ at, variant, beside, min }) => {
      const one = results.find((other) => other.variant === beside && other.concurrency === 1)
      if (one === undefined || result.variant !== variant || result.concurrency !== at) return []
      if (result.workload !== 'commit') return []
      return compare(result.opsPerSecond / one.opsPerSecond, `× the speed of ${beside} one by one`, { min })
    })
    return { ...result, comparisons: [...result.comparisons, ...reached] }
  })

/** The same contenders once more, with something in front of the server that counts. */
export async function openCounting(protocol: 'tcp' | 'http', url: string, open: (url: string) => Promise<Opened>) {
  const proxy = await (protocol === 'tcp' ? TcpProxy : HttpProxy).to(url)
  const opened = await open(proxy.url)
  const trips = () => ('roundTrips' in proxy ? proxy.roundTrips : proxy.requests)
  const roundTrips = async (workload: Workload, stock: Stock, atOnce: number): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {}
    for (const [name, variant] of Object.entries(variantsOf(opened.contenders, workload, stock, atOnce))) {
      const { role, run, prepare, times: most = Number.POSITIVE_INFINITY } = variant
      // With a connection for each, they share no trips.
      if (role === 'peer' && atOnce > 1) continue
      await prepare?.()
      const each = async (times: number) => {
        for (let done = 0; done < times; done++) await run()
      }
      const together = (times: number) => Promise.all(Array.from({ length: atOnce }, () => each(times)))
      // Connections are made and statements prepared at the first use.
      await together(WARM_UP)
      const before = trips()
      const times = Math.min(most - WARM_UP, Math.max(4, Math.ceil(PAGE / 10 / atOnce)))
      await together(times)
      const counted = trips() - before
      // Some have a server of their own, behind no proxy.
      if (counted > 0) counts[name] = counted / (times * atOnce)
    }
    return counts
  }
  return {
    roundTrips,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

/** All workloads at a site. */
export const measuresOf = (site: Site): Measure[] =>
  WORKLOAD_NAMES.map((workload) => ({
    name: `${site.backend}-${workload}`,
    workload,
    run: (settings, onProgress) => measureAt(site, workload, settings, onProgress),
  }))
