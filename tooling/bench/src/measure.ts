/** One thing to be timed: synchronous, or asynchronous with so many under way at once. */
export type Operation = Turned &
  ({ run: () => unknown; concurrency?: undefined } | { run: () => Promise<unknown>; concurrency: number })

/** What an operation needs, where it uses something up. */
export interface Turned {
  /** Called before each turn, and not timed. */
  prepare?: (() => Promise<unknown>) | undefined
  /** How often the operation is done in a turn, instead of as often as there is time for. */
  times?: number | undefined
}

/** What an operation took, in milliseconds. */
export interface Timing {
  /** The elapsed time per operation, round by round. */
  readonly rounds: readonly number[]
  readonly opsPerSecond: number
  /** From the call to the result of one operation. */
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of an operation, of all threads. */
  readonly cpuMs: number
}

export interface Turns {
  /** How long each operation is measured, in all. */
  seconds: number
  /** The length of a turn. Default: 50 ms. */
  turnMs?: number
  /** Operations that are timed together, where one is too short for the clock. Default: 1. */
  repeat?: number
  onProgress?: (part: number) => void
}

/** The value below which this part of the values lies (nearest rank). */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN
}

const median = (values: readonly number[]): number => percentile(values, 0.5)

/**
 * How many times longer `a` takes than `b`: the median over the rounds, each of which compares two turns that were
 * measured one after the other, so that whatever else the machine does hits both.
 */
export const timesLonger = (a: Timing, b: Timing): number =>
  median(a.rounds.map((time, round) => time / (b.rounds[round] ?? Number.NaN)))

interface Turn {
  elapsed: number
  latencies: number[]
}

function takeTurn(run: () => unknown, times: number | undefined, turnMs: number, repeat: number): Turn {
  const latencies: number[] = []
  const start = performance.now()
  const isOver = () => (times === undefined ? before - start >= turnMs : latencies.length >= times)
  let before = start
  do {
    for (let i = 0; i < repeat; i++) run()
    const after = performance.now()
    latencies.push((after - before) / repeat)
    before = after
  } while (!isOver())
  return { elapsed: before - start, latencies }
}

async function takeConcurrentTurn(
  run: () => Promise<unknown>,
  concurrency: number,
  times: number | undefined,
  turnMs: number,
): Promise<Turn> {
  const latencies: number[] = []
  const start = performance.now()
  const isOver = (now: number) => (times === undefined ? now - start >= turnMs : latencies.length >= times)
  const caller = async () => {
    let before = performance.now()
    do {
      await run()
      const after = performance.now()
      latencies.push(after - before)
      before = after
    } while (!isOver(before))
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
  return { elapsed: performance.now() - start, latencies }
}

export const takeTurnOf = ({ run, concurrency, times }: Operation, turnMs: number, repeat = 1): Promise<Turn> =>
  concurrency === undefined
    ? Promise.resolve(takeTurn(run, times, turnMs, repeat))
    : takeConcurrentTurn(run, concurrency, times, turnMs)

/** Processor time of this process, of all its threads. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** V8 compiles well what has run often: so many calls, or so many milliseconds, before an operation is timed. */
const WARM_CALLS = 2000
const WARM_MS = 2000

/**
 * Does an operation until its code has been compiled, for at most four times as long as it will be measured. What uses
 * something up is done once.
 */
export async function warmUp(operation: Operation, seconds: number, turnMs: number, repeat = 1): Promise<void> {
  const end = performance.now() + Math.min(WARM_MS, 4000 * seconds)
  let calls = 0
  do {
    await operation.prepare?.()
    const { latencies } = await takeTurnOf(operation, turnMs, repeat)
    calls += latencies.length * repeat
  } while (operation.times === undefined && calls < WARM_CALLS && performance.now() < end)
}

/** Measures operations in short turns, one after the other, in one process. */
export async function measureInTurns<Name extends string>(
  operations: Readonly<Record<Name, Operation>>,
  { seconds, turnMs = 50, repeat = 1, onProgress }: Turns,
): Promise<Record<Name, Timing>> {
  const names = Object.keys(operations) as Name[]
  const taken = names.map((name) => ({ name, rounds: [] as number[], cpu: [] as number[], latencies: [] as number[] }))
  const rounds = Math.max(1, Math.round((seconds * 1000) / turnMs))
  for (const name of names) await warmUp(operations[name], seconds, turnMs, repeat)
  for (let round = 0; round < rounds; round++) {
    for (const { name, rounds, cpu, latencies } of taken) {
      await operations[name].prepare?.()
      const before = cpuMs()
      const turn = await takeTurnOf(operations[name], turnMs, repeat)
      const done = turn.latencies.length * repeat
      cpu.push((cpuMs() - before) / done)
      rounds.push(turn.elapsed / done)
      for (const latency of turn.latencies) latencies.push(latency)
    }
    // Whoever comes second may profit or suffer from the first.
    taken.reverse()
    onProgress?.((round + 1) / rounds)
  }
  const timings = names.map((name): [Name, Timing] => {
    const { rounds = [], cpu = [], latencies = [] } = taken.find((each) => each.name === name) ?? {}
    return [
      name,
      {
        rounds,
        opsPerSecond: 1000 / median(rounds),
        p50Ms: percentile(latencies, 0.5),
        p99Ms: percentile(latencies, 0.99),
        cpuMs: median(cpu),
      },
    ]
  })
  return Object.fromEntries(timings) as Record<Name, Timing>
}
