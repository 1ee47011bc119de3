import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Result } from './results.ts'
import { BYTES } from './subjects.ts'

export interface Settings {
  /** How long each variant is measured. */
  readonly seconds: number
  /** Names of workloads; undefined: `commit`, and what is no workload of all backends. */
  readonly workload: readonly string[] | undefined
  /** Sizes of payloads, in bytes. */
  readonly payload: readonly number[]
  /** How many executions and pending events the database of the largest growth holds. */
  readonly rows: number
  /** Where databases are made: what its disk takes for an fsync is a part of every number. */
  readonly dir: string
  /** Names of backends; empty: all. */
  readonly backend: readonly string[]
  /** Names of measures, or how they begin; empty: all. */
  readonly only: readonly string[]
  /** How many commits are under way at once, where servers are measured: one table row each. */
  readonly concurrency: readonly number[]
  /** Where to write the results as JSON. */
  readonly json: string | undefined
  /** Where to draw the results, as SVG. */
  readonly chart: string | undefined
  /** A page without its ending, whose figures are written anew. */
  readonly report: string | undefined
  /** Fail when a target is missed. */
  readonly check: boolean
}

/** One entry of the benchmark. */
export interface Measure {
  readonly name: string
  /** Absent: of a measure that is one by itself. */
  readonly workload?: string
  /** @param onProgress told the part that is done, from 0 to 1 */
  run(settings: Settings, onProgress: (part: number) => void): Promise<Result[]>
}

/** What can be measured of one backend. */
export interface Backend {
  readonly measures: readonly Measure[]
  /** Versions and settings on which the numbers depend. */
  describe(dir: string): Promise<string[]>
}

export const HELP = `npm run bench -- [options]

  --backend NAME,NAME,…
                  measure only these backends
  --workload NAME,NAME,…
                  measure these workloads, or all (commit)
  --payload N,N,…
                  sizes of payloads in bytes, for commit and load (600)
  --only NAME     measure only what is called so or begins so; may be repeated
  --concurrency N,N,…
                  how many commits are under way at once on a server (1,16,256)
  --seconds N     how long to measure each variant (5)
  --rows N        executions in the large database (1000000)
  --dir DIR       where to make the databases (the system's temporary folder)
  --json FILE     write the results to a file, as an array
  --chart FILE    draw the results into a file, as SVG
  --report PAGE   write the figures of PAGE.md anew, with charts in the folder PAGE: all workloads and sizes of payloads,
                  half a second for each variant, where nothing else is said
  --check         exit with 1 when a target is missed
  --list          only list the measures
`

const positive = (option: string, text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${option} must be a positive number, not ${text}`)
  return value
}

const integers = (option: string, text: string): number[] =>
  text.split(',').map((part) => Math.ceil(positive(option, part)))

// npm and pnpm run scripts in the package's own folder, and say where they were called.
const atCaller = (path: string): string => resolve(process.env.INIT_CWD ?? '', path)

const fileAt = (path: string | undefined): string | undefined => (path === undefined ? undefined : atCaller(path))

/** @throws Error with what is wrong */
export function readArguments(args: readonly string[]): Settings & { help: boolean; list: boolean } {
  const { values } = parseArgs({
    // pnpm hands on the `--` that divides its own options from the script's.
    args: args.filter((arg) => arg !== '--'),
    options: {
      backend: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      concurrency: { type: 'string', default: '1,16,256' },
      seconds: { type: 'string' },
      workload: { type: 'string' },
      payload: { type: 'string' },
      rows: { type: 'string', default: '1000000' },
      dir: { type: 'string', default: tmpdir() },
      json: { type: 'string' },
      chart: { type: 'string' },
      report: { type: 'string' },
      check: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const isReport = values.report !== undefined
  return {
    ...values,
    backend: values.backend?.split(',') ?? [],
    dir: atCaller(values.dir),
    json: fileAt(values.json),
    chart: fileAt(values.chart),
    report: fileAt(values.report),
    seconds: positive('seconds', values.seconds ?? (isReport ? '0.5' : '5')),
    workload: (values.workload ?? (isReport ? 'all' : undefined))?.split(','),
    payload: integers('payload', values.payload ?? (isReport ? '600,20000,200000' : String(BYTES))),
    concurrency: integers('concurrency', values.concurrency),
    rows: Math.ceil(positive('rows', values.rows)),
  }
}
