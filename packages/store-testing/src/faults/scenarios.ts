import type { ExecutionStore } from '@harel/store-base'
import { HttpProxy } from './http-proxy.js'
import { Random } from './random.js'
import { type Fault, type Outcome, Site, type SiteOptions, type UnderFaults } from './site.js'
import { knownOf } from './stream.js'
import { CUTS, TcpProxy } from './tcp-proxy.js'
import type { WriterProcess } from './writer-process.js'

/** One run of a scenario. */
export interface ScenarioRun extends SiteOptions {
  /** 1 is the whole length. */
  readonly scale: number
}

export interface Scenario {
  /** In a word or two, for tables and command lines. */
  readonly name: string
  /** The guarantee, as a sentence. */
  readonly title: string
  /** Why it says nothing about a store. */
  reasonToSkip(under: UnderFaults): string | undefined
  run(run: ScenarioRun): Promise<Outcome>
}

const proxyTo = ({ address, speaks }: UnderFaults): Promise<TcpProxy | HttpProxy> =>
  (speaks === 'http' ? HttpProxy : TcpProxy).to(address?.() ?? '')

const needsServer = ({ speaks }: UnderFaults) => (speaks === undefined ? 'it has no server' : undefined)

const needsShared = ({ capabilities }: UnderFaults) =>
  capabilities.shared ? undefined : 'every handle has a database of its own'

const size = (whole: number, scale: number): number => Math.max(1, Math.round(whole * scale))

/** How a request or its reply is lost. */
function lossesOf(proxy: TcpProxy | HttpProxy): (() => Promise<void>)[] {
  const cuts = CUTS.map((cut) => () => proxy.cutNext(cut))
  if (!(proxy instanceof HttpProxy)) return cuts
  const lost = { status: 502, body: 'Bad Gateway' }
  return [...cuts, ...[lost, { ...lost, afterServer: true }].map((answer) => () => proxy.answerNext(answer))]
}

/** What can happen to connections. */
function faultsOf(proxy: TcpProxy | HttpProxy): Fault[] {
  const losses = lossesOf(proxy).map(
    (lose): Fault =>
      (over) =>
        Promise.race([lose(), over]),
  )
  const held = async () => {
    proxy.hold()
    await pause(100)
    proxy.cutAll()
    proxy.restore()
  }
  const slow = async () => {
    proxy.slowDown({ latencyMs: 5, bytesPerSecond: 1_000_000 })
    await pause(100)
    proxy.restore()
  }
  const away = async () => {
    proxy.refuse()
    await pause(50)
    proxy.restore()
  }
  return [...losses, async () => proxy.cutAll(), held, slow, away]
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** A scenario on a site of its own. `play` returns the number of faults. */
const scenario = (
  name: string,
  title: string,
  reasonToSkip: Scenario['reasonToSkip'],
  play: (site: Site, run: ScenarioRun & { random: Random }) => Promise<number>,
): Scenario => ({
  name,
  title,
  reasonToSkip,
  run: (run) => Site.run(run, (site) => play(site, { ...run, random: new Random(run.seed) })),
})

/** Lets processes that wait begin at the same moment; resolves when all of them have done their work. */
async function together(processes: readonly WriterProcess[]): Promise<void> {
  try {
    await Promise.all(processes.map((process) => process.ready()))
    for (const process of processes) process.go()
    await Promise.all(processes.map((process) => process.end()))
  } finally {
    await Promise.all(processes.map((process) => process.kill()))
  }
}

/** The same under a prefix of its own, which has no tables yet. */
const onNewPrefix = (scenario: Scenario): Scenario => ({
  ...scenario,
  run: (run) => {
    const { prefix = 'harel' } = run.under
    return scenario.run({ ...run, under: { ...run.under, prefix: `${prefix}_${run.seed}` } })
  },
})

/** In what order they are played. */
export const scenarios: readonly Scenario[] = [
  scenario(
    'lost-replies',
    'a commit that loses its request or its reply is applied once, or its outcome is unknown',
    needsServer,
    async (site, { under, seed, scale }) => {
      await using proxy = await proxyTo(under)
      const store = await site.open(proxy.url)
      const direct = await site.direct()
      const losses = lossesOf(proxy)
      const commits = size(400, scale)
      let tried = 0
      let faults = 0
      const unlucky: Pick<ExecutionStore, 'load' | 'commit'> = {
        load: (id) => direct.load(id),
        commit: (execution, changes) => {
          // Every other one, so that what was refused gets through when it is tried again.
          if (tried++ % 2 === 0) void losses[faults++ % losses.length]?.()
          return store.commit(execution, changes).finally(() => proxy.restore())
        },
      }
      await site.write(unlucky, { commits, writers: 1, executions: 5, seed })
      return faults
    },
  ),
  scenario(
    'connections',
    'cut, held and slow connections lose and repeat nothing of a stream of commits',
    needsServer,
    async (site, { under, seed, scale, random }) => {
      await using proxy = await proxyTo(under)
      const commits = size(5000, scale)
      const stream = site.write(await site.open(proxy.url), { commits, writers: 8, executions: 50, seed })
      return await site.disturb(stream, commits, faultsOf(proxy), size(200, scale), random)
    },
  ),
  scenario(
    'killed-server',
    'a server that is killed loses and repeats nothing of a stream of commits',
    ({ server }) => (server === undefined ? 'it has no server that can be killed' : undefined),
    async (site, { under: { server }, seed, scale, random }) => {
      const restart = async () => {
        await server?.kill()
        await server?.restart()
      }
      const commits = size(5000, scale)
      const stream = site.write(await site.open(), { commits, writers: 8, executions: 50, seed })
      return site.disturb(stream, commits, [restart], size(20, scale), random)
    },
  ),
  scenario(
    'killed-writers',
    'processes that are killed while they write lose and repeat nothing',
    ({ program }) => (program === undefined ? 'there is no program that writes' : undefined),
    async (site, { under: { program = '' }, seed, scale, random }) => {
      const commits = size(5000, scale)
      const failure = Promise.withResolvers<never>()
      let started = 0
      const start = () => {
        const name = `${++started}`
        const process = site.start(program, { commits, writers: 4, executions: 50, seed: seed + started, name })
        process.end().catch(failure.reject)
        return process
      }
      const processes = [start(), start()]
      const enough = site.ledger.reaches(commits)
      const kill = async () => {
        const at = random.below(processes.length)
        await processes[at]?.kill()
        processes[at] = start()
      }
      try {
        const stream = Promise.race([enough, failure.promise])
        return await site.disturb(stream, commits, [kill], size(40, scale), random)
      } finally {
        await Promise.all(processes.map((process) => process.kill()))
        // A server may still be at work on what they have sent.
        await pause(1000)
      }
    },
  ),
  scenario(
    'storm',
    'of many writers who storm one execution each version has one',
    () => undefined,
    async (site, { seed, scale }) => {
      const writers = size(64, Math.max(scale, 1 / 8))
      await site.write(await site.direct(), { commits: size(2000, scale), writers, executions: 1, seed })
      return 0
    },
  ),
  scenario(
    'purges',
    'an id that is purged and reborn inherits nothing of its past lives',
    needsShared,
    async (site, { seed, scale, random }) => {
      const commits = size(2000, scale)
      const executions = 8
      const purger = await site.open()
      const purge = async () => {
        const execution = await purger.load(`${site.ns}e${random.below(executions)}`)
        if (execution === undefined || !(await purger.purge(execution.id, execution.version))) return
        site.record({ note: 'purged', execution: execution.id, applied: knownOf(execution).applied })
      }
      // Each has one writer: a stale copy of a past life passes against a new one of the same version.
      const stream = site.write(await site.open(), { commits, writers: 4, executions, exclusive: true, seed })
      return site.disturb(stream, commits, [purge], size(400, scale), random)
    },
  ),
  onNewPrefix(
    scenario(
      'opening',
      'stores that open at once where nothing is yet can all write',
      needsShared,
      async (site, { under: { program }, seed, scale }) => {
        const commits = size(100, scale)
        const streams = Array.from({ length: 10 }, (_, n) => ({
          commits,
          writers: 1,
          executions: 10,
          seed: seed + n,
          name: `${n}`,
        }))
        if (program !== undefined) await together(streams.map((stream) => site.start(program, stream, true)))
        else await Promise.all(streams.map(async (stream) => site.write(await site.open(), stream)))
        return 0
      },
    ),
  ),
]
