/** What is drawn of the results. */
import type { Role } from '../contender.ts'
import { isGrowth, placeOf } from '../growth.ts'
import type { Result } from '../results.ts'
import { barChart, type Curve, curveChart, type Drawing } from './drawing.ts'

const KINDS: Readonly<Record<Role, number>> = { store: 0, driver: 2, peer: 1 }
const COLOURS = '(blue: store, green: driver by hand, orange: peers)'

export const byBackend = (results: readonly Result[]): Map<string, Result[]> =>
  Map.groupBy(results, ({ backend }) => backend) as Map<string, Result[]>

/** Operations per second of all that do the same at once, on one scale for each workload. */
function speedsOf(title: string, results: readonly Result[], nameOf: (result: Result) => string): Drawing {
  const groups = [...Map.groupBy(results, nameOf)].map(([name, group]) => ({
    name,
    scale: group[0]?.workload ?? '',
    bars: group.map(({ variant, role, opsPerSecond }) => ({ label: variant, value: opsPerSecond, kind: KINDS[role] })),
  }))
  return barChart(`${title} ${COLOURS}`, groups)
}

const levelOf = ({ concurrency }: Result): string => (concurrency === 1 ? 'one by one' : `${concurrency} at once`)

/** Commits per second of all that commit, one by one and many at once; undefined where none was measured. */
export function commitChart(backend: string, results: readonly Result[]): Drawing | undefined {
  const commits = results.filter(({ workload }) => workload === 'commit')
  return commits.length === 0 ? undefined : speedsOf(`${backend}: commits per second`, commits, levelOf)
}

/** Milliseconds of each operation of the store and of the fastest by hand, at each size. */
export function growthChart(backend: string, results: readonly Result[]): Drawing {
  const curves: Curve[] = []
  const operations = Map.groupBy(results, (result) => `${placeOf(result).operation}, ${result.concurrency} at once`)
  for (const [kind, [operation, group]] of [...operations].entries()) {
    for (const role of ['store', 'driver'] as const) {
      const [variant] = group
        .filter((result) => result.role === role)
        .toSorted((a, b) => b.opsPerSecond - a.opsPerSecond)
      const points = group
        .filter((result) => result.variant === variant?.variant)
        .map((result): [number, number] => [placeOf(result).rows, 1000 / result.opsPerSecond])
      const name = operation.replace(', 1 at once', '')
      curves.push({ name: role === 'store' ? name : `${name}, by hand`, points, kind, isDashed: role === 'driver' })
    }
  }
  return curveChart(`${backend}: what an operation costs while the database grows`, 'ms', curves)
}

/** Everything that was measured. */
export const allCharts = (results: readonly Result[]): Drawing[] => [
  ...[...byBackend(results.filter((result) => !isGrowth(result)))].map(([backend, all]) =>
    speedsOf(`${backend}: operations per second`, all, (result) => `${result.workload}, ${levelOf(result)}`),
  ),
  ...[...byBackend(results.filter(isGrowth))].map(([backend, all]) => growthChart(backend, all)),
]
