/** Commits of a store on a server, measured beside others that write the same. */
import type { Result } from './results.ts'
import type { Settings } from './settings.ts'
import { BYTES } from './subjects.ts'
import { type Goal, measureVariants, type Variant } from './variants.ts'

export type { Goal }

/** Measures the variants in turns, at each concurrency that is asked for. @param variants what commits once */
export async function measureCommits<Name extends string>(
  backend: string,
  variants: Readonly<Record<Name, () => Promise<unknown>>>,
  goals: readonly Goal<Name>[],
  { seconds, concurrency }: Settings,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  const runs = Object.entries(variants) as [Name, () => Promise<unknown>][]
  const stores = Object.fromEntries(runs.map(([name, run]): [string, Variant] => [name, { role: 'store', run }]))
  const results: Result[] = []
  for (const [index, atOnce] of concurrency.entries()) {
    const task = { backend, workload: `commit, ${BYTES} B`, concurrency: atOnce, seconds, goals }
    const progress = (part: number) => onProgress((index + part) / concurrency.length)
    results.push(...(await measureVariants(stores, task, progress)))
  }
  return results
}
