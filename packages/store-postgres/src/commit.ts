import type { PreparedCommit, PreparedEmit, PreparedSpawn, TimerOp, Verdict } from '@harel/store-base'
import { toSummaryColumn } from '@harel/store-base/sql'
import { arrayText, type Param, type Row } from './client.js'
import { SEPARATOR } from './commit-functions.js'

/** What became of a commit; busy: somebody else holds its execution. */
export type Outcome = Verdict | 'busy'

/** All that is large in a commit. */
export const textsOf = ({ data, emits, spawns, trace = '' }: PreparedCommit): string[] => [
  data,
  ...emits.map(({ event }) => event),
  ...spawns.map(({ context }) => context),
  trace,
]

/** What of a commit is a column of its own, but for the texts of JSON. */
const fieldsOf = (commit: PreparedCommit): Param[] => [
  commit.id,
  commit.expected,
  commit.definitionId,
  commit.status,
  commit.parentId,
  toSummaryColumn(commit.outcome),
  toSummaryColumn(commit.activePath),
  commit.finishedAt,
  commit.processedEventId ?? null,
]

const joined = (texts: readonly (string | undefined)[]): string => texts.join(SEPARATOR)

/** Entries of commits as parallel arrays. */
interface Entries {
  /** Of each entry the place of its commit, from 1. */
  readonly places: Param
  readonly columns: readonly Param[]
}

function entries<Entry>(
  commits: readonly PreparedCommit[],
  entriesOf: (commit: PreparedCommit) => readonly Entry[],
  columnsOf: (entries: readonly Entry[]) => readonly Param[],
): Entries {
  const all = commits.flatMap(entriesOf)
  const places = commits.flatMap((commit, index) => entriesOf(commit).map(() => index + 1))
  return { places: arrayText(places), columns: columnsOf(all) }
}

const emitColumns = (emits: readonly PreparedEmit[]): Param[] => [
  arrayText(emits.map(({ targetId }) => targetId)),
  joined(emits.map(({ event }) => event)),
]

const timerColumns = (timers: readonly TimerOp[]): Param[] => [
  arrayText(timers.map(({ path }) => path)),
  arrayText(timers.map((timer) => (timer.action === 'schedule' ? timer.fireAt : null))),
]

const spawnColumns = (spawns: readonly PreparedSpawn[]): Param[] => [
  arrayText(spawns.map(({ childId }) => childId)),
  arrayText(spawns.map(({ rootPath }) => rootPath)),
  joined(spawns.map(({ context }) => context)),
]

const companionsOf = (commits: readonly PreparedCommit[]): Entries[] => [
  entries(commits, ({ emits }) => emits, emitColumns),
  entries(commits, ({ timers }) => timers, timerColumns),
  entries(commits, ({ spawns }) => spawns, spawnColumns),
]

/** The parameters of the commit function. What most commits lack is left out. */
export function commitParams(commit: PreparedCommit, traceMax: number): Param[] {
  const { data, emits, timers, spawns, trace } = commit
  const params = [...fieldsOf(commit), data, ...emitColumns(emits)]
  if (timers.length === 0 && spawns.length === 0 && trace === undefined) return params
  return [...params, trace ?? null, traceMax, ...timerColumns(timers), ...spawnColumns(spawns)]
}

/** The parameters of the function that commits many. */
export function commitAllParams(commits: readonly PreparedCommit[], traceMax: number): Param[] {
  const rows = commits.map(fieldsOf)
  const columns = rows[0]?.map((_, column) => arrayText(rows.map((row) => row[column] ?? null))) ?? []
  return [
    ...columns,
    joined(commits.map(({ data }) => data)),
    commits.some(({ trace }) => trace !== undefined) ? joined(commits.map(({ trace }) => trace)) : '',
    ...companionsOf(commits).flatMap(({ places, columns }) => [places, ...columns]),
    traceMax,
  ]
}

/** What became of commits, from the answer of either function. */
export function outcomes(commits: readonly PreparedCommit[], [answer]: Row = []): Outcome[] {
  const [versions = [], numbers = []] = (answer ?? '').split(';').map((list) => list.split(',').map(Number))
  let taken = 0
  return commits.map(({ expected, emits }, index) => {
    const found = versions[index] ?? -1
    if (found === -1) return 'busy'
    if (found !== expected) return { applied: false, found: found === 0 ? null : found }
    taken += emits.length
    return { applied: true, seqs: numbers.slice(taken - emits.length, taken) }
  })
}
