/** Commits of a store on a server, measured beside others that write the same. */
import { measureInTurns, type Operation, timesLonger } from './measure.ts'
import { type Comparison, compare, type Result, resultsOf } from './report.ts'
import type { Settings } from './settings.ts'
import { BYTES } from './workload.ts'

/** How a variant should do beside another one, at so many at once. */
export interface Goal<Name extends string> {
  readonly at: number
  readonly variant: Name
  readonly beside: Name
  /** `max`: of times; `min`: of speeds. */
  readonly target: Comparison['target']
}

/**
 * Measures the variants in turns, at each concurrency that is asked for.
 *
 * @param variants what commits the next execution: with one event, a dedupe id and a payload of `BYTES`, serialised for
 *   the purpose; what it promises is then as durable as the server's settings say
 */
export async function measureCommits<Name extends string>(
  backend: string,
  variants: Readonly<Record<Name, () => Promise<unknown>>>,
  goals: readonly Goal<Name>[],
  { seconds, concurrency }: Settings,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  const names = Object.keys(variants) as Name[]
  const results: Result[] = []
  for (const [index, atOnce] of concurrency.entries()) {
    const operations = Object.fromEntries(
      names.map((name): [Name, Operation] => [name, { run: variants[name], concurrency: atOnce }]),
    ) as Record<Name, Operation>
    const timings = await measureInTurns(operations, {
      seconds,
      turnMs: 100,
      onProgress: (part) => onProgress((index + part) / concurrency.length),
    })
    const comparisons: Partial<Record<Name, Comparison[]>> = {}
    for (const { at, variant, beside, target } of goals) {
      if (at !== atOnce) continue
      const [a, b] = [timings[variant], timings[beside]]
      const comparison =
        'max' in target
          ? compare(timesLonger(a, b), `× the time of ${beside}`, target)
          : compare(timesLonger(b, a), `× the speed of ${beside}`, target)
      comparisons[variant] = [...(comparisons[variant] ?? []), comparison]
    }
    const everyone = Object.fromEntries(names.map((name) => [name, atOnce])) as Record<Name, number>
    results.push(...resultsOf(backend, `commit, ${BYTES} B`, timings, { concurrency: everyone, comparisons }))
  }
  return results
}
