/** Removing executions for good, a whole tree at a time. */
import {
  CorruptRecord,
  checkCount,
  checkFlag,
  checkFunction,
  checkKey,
  checkMembers,
  type Execution,
  InvalidArgument,
  isFinished,
  MAX_KEY_BYTES,
  StoreConflict,
  type TraceStep,
} from '@harel/store-base'
import { checkSignal } from './arguments.js'
import { PurgeRefused } from './errors.js'
import type { Host } from './host.js'
import { INVOKED, RESERVED_PREFIX } from './reserved.js'
import { oneOf } from './settings.js'

/** What `archive` is given before a tree is removed: all of it, the root first. */
export interface ArchivedTree {
  readonly rootId: string
  readonly executions: readonly Execution[]
  /** By execution id, for those that have one. */
  readonly traces: { readonly [id: string]: readonly TraceStep[] }
}

/** Is waited for; what it throws keeps the tree from being removed. */
export type Archive = (tree: ArchivedTree) => void | Promise<void>

export interface PurgeOptions {
  archive?: Archive
}

export interface PurgeFinishedOptions extends PurgeOptions {
  /** Only what has been finished for at least so long, in seconds. */
  olderThan: number
  /**
   * `trees` (default), or `promises`: the records of what machines have invoked that is no machine, one by one, also where
   * the tree lives on; not those whose result the machine has not handled yet.
   */
  of?: 'trees' | 'promises'
  /** Default: DONE and CANCELLED. */
  statuses?: readonly ('DONE' | 'CANCELLED')[]
  /**
   * At most so many of them are removed or refused in this call, and ten thousand looked at; go on with `cursor`. Default:
   * 1000.
   */
  limit?: number
  /** The `nextCursor` of the call before. */
  cursor?: string | null
  /** Only say what would be removed. */
  dryRun?: boolean
  signal?: AbortSignal
}

export interface PurgeReport {
  /** The promises, or the roots of the trees, that were removed, or would be. */
  readonly purged: string[]
  readonly refused: { readonly id: string; readonly reason: string }[]
  /** Null: everything has been looked at. Empty, on a store that pages by offsets: what is left is at the beginning. */
  readonly nextCursor: string | null
}

/** How many executions a step of `purgeFinished` looks at, and a call of it at the most. */
const STEP = 100
const MOST = 10_000

/**
 * Removes a finished root and everything below it, what no parent lists any more included. An execution whose parent does
 * not exist any more is a root. Leaves go before their parents, so that a purge that was cut off can be made again.
 *
 * @returns false if there is no such execution
 * @throws InvalidArgument, PurgeRefused, StoreConflict when a member was changed meanwhile
 */
export async function purge(host: Host, rootId: string, options: PurgeOptions = {}): Promise<boolean> {
  checkKey('id', rootId)
  checkMembers('options', options, ['archive'])
  const archive = checkFunction('options.archive', options.archive)
  const { store } = host
  const root = await store.load(rootId)
  if (root === undefined) return false
  const members = await finishedTree(host, root)
  if (archive !== undefined) await archive(await archived(host, members))
  for (const { id, version } of members.toReversed()) {
    if (!(await store.purge(id, version))) throw await conflict(host, id, version)
  }
  return true
}

const conflict = async ({ store }: Host, id: string, version: number): Promise<StoreConflict> =>
  new StoreConflict(id, version, (await store.load(id))?.version ?? null)

/** What is kept of each execution of a tree, of which there may be more than there is room for. */
type Member = Pick<Execution, 'id' | 'version' | 'status' | 'parentId'>

const memberOf = ({ id, version, status, parentId }: Execution): Member => ({ id, version, status, parentId })

/** The root first, and each before its children. */
async function treeOf({ store }: Host, root: Execution): Promise<Member[]> {
  const known = new Map([[root.id, memberOf(root)]])
  const prefix = `${root.id}:`
  // What no longer fits into an id has nothing below it.
  const below = Buffer.byteLength(prefix) > MAX_KEY_BYTES ? [] : await store.idsWithPrefix(prefix)
  const pending = [...below, ...Object.keys(root.children)]
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (known.has(id)) continue
    const execution = await store.load(id)
    if (execution === undefined) continue
    known.set(id, memberOf(execution))
    for (const child in execution.children) pending.push(child)
  }
  const byParent = Map.groupBy(known.values(), ({ parentId }) => parentId)
  const tree = [memberOf(root)]
  for (const [parentId, children] of byParent) {
    if (parentId === null || known.has(parentId) || (await store.load(parentId)) !== undefined) continue
    for (const orphan of children) if (orphan.id !== root.id) tree.push(orphan)
  }
  for (const { id } of tree) for (const child of byParent.get(id) ?? []) tree.push(child)
  return tree
}

/**
 * The members of a tree of which nothing is to come any more. What has failed below a root that has ended does not stand in
 * the way: nobody waits for it.
 *
 * @throws PurgeRefused
 */
async function finishedTree(host: Host, root: Execution): Promise<Member[]> {
  if (root.id.startsWith(RESERVED_PREFIX)) throw new PurgeRefused(root.id, 'it belongs to the runner', [])
  if (root.parentId !== null && (await host.store.load(root.parentId)) !== undefined) {
    throw new PurgeRefused(root.id, `it is a child of ${JSON.stringify(root.parentId)}; purge the root of its tree`, [])
  }
  const members = await treeOf(host, root)
  const unfinished = members.filter(
    (each) => !isFinished(each.status) && (each.id === root.id || each.status !== 'FAILED'),
  )
  const [first, ...others] = unfinished
  if (first === undefined) return members
  const more = others.length === 0 ? '' : `, and ${others.length} more of its tree are not finished`
  throw new PurgeRefused(
    root.id,
    `${JSON.stringify(first.id)} is ${first.status}${more}`,
    unfinished.slice(0, 10).map(({ id }) => id),
  )
}

/** @throws PurgeRefused */
async function refuseUnheard({ store }: Host, { id, parentId }: Execution): Promise<void> {
  const parent = parentId === null ? undefined : await store.load(parentId)
  if (parent === undefined || isFinished(parent.status) || !(id in parent.children)) return
  throw new PurgeRefused(id, `${JSON.stringify(parentId)} has not handled its result`, [])
}

/** One record of what is no machine. Another attempt at its start, if one still comes, has no effect but its calls. */
async function purgePromise(host: Host, id: string, { archive }: PurgeOptions): Promise<boolean> {
  const promise = await host.store.load(id)
  if (promise === undefined) return false
  await refuseUnheard(host, promise)
  const { version } = promise
  if (archive !== undefined) await archive(await archived(host, [promise]))
  if (!(await host.store.purge(id, version))) throw await conflict(host, id, version)
  return true
}

/** All of it at once, as that is what an archive is given. @throws StoreConflict */
async function archived({ store }: Host, members: readonly Member[]): Promise<ArchivedTree> {
  const executions: Execution[] = []
  const traces: { [id: string]: TraceStep[] } = {}
  for (const { id, version } of members) {
    const trace = await store.readTrace(id)
    const execution = await store.load(id)
    if (execution?.version !== version) throw new StoreConflict(id, version, execution?.version ?? null)
    executions.push(execution)
    if (trace.length > 0) traces[id] = trace
  }
  return { rootId: members[0]?.id ?? '', executions, traces }
}

const MEMBERS = ['olderThan', 'of', 'statuses', 'limit', 'cursor', 'dryRun', 'archive', 'signal']

/** The options with their defaults. @throws InvalidArgument */
function checkOptions(options: PurgeFinishedOptions) {
  checkMembers('options', options, MEMBERS)
  const { olderThan, of = 'trees', limit = 1000, cursor = null, dryRun = false, archive, signal } = options
  const statuses = options.statuses ?? ['DONE', 'CANCELLED']
  if (typeof olderThan !== 'number' || !Number.isFinite(olderThan) || olderThan < 0) {
    throw new InvalidArgument('options.olderThan', olderThan, 'a number of seconds, 0 or more')
  }
  if (!Array.isArray(statuses)) throw new InvalidArgument('options.statuses', statuses, 'an array of statuses')
  if (cursor !== null && typeof cursor !== 'string') throw new InvalidArgument('options.cursor', cursor, 'a nextCursor')
  return {
    olderThan,
    of: oneOf('options.of', of, ['trees', 'promises']),
    statuses: statuses.map((status, n) => oneOf(`options.statuses[${n}]`, status, ['DONE', 'CANCELLED'])),
    limit: checkCount('options.limit', limit, 1),
    cursor,
    dryRun: checkFlag('options.dryRun', dryRun),
    archive: checkFunction('options.archive', archive),
    signal: checkSignal(signal),
  }
}

/**
 * Removes what is finished, as much as one call may. What cannot be removed yet is named and left. What has lost its parent
 * without having been purged with it is not found here; `purge` removes it.
 *
 * @throws InvalidArgument
 */
export async function purgeFinished(host: Host, options: PurgeFinishedOptions): Promise<PurgeReport> {
  const checked = checkOptions(options)
  const { olderThan, of, statuses, limit, dryRun, archive, signal } = checked
  const chosen = of === 'trees' ? { rootsOnly: true } : { definitionId: INVOKED }
  const remove = dryRun ? check : of === 'trees' ? purge : purgePromise
  const latest = host.settings.clock() - olderThan
  const report = { purged: [] as string[], refused: [] as { id: string; reason: string }[] }
  const left = () => limit - report.purged.length - report.refused.length
  const list = (size: number, after: string | null) =>
    host.store.listExecutions({ ...chosen, status: statuses, limit: size, cursor: after })
  let { cursor }: { cursor: string | null } = checked
  let looked = 0
  do {
    signal?.throwIfAborted()
    const { items, nextCursor } = await list(Math.min(STEP, left()), cursor)
    let removed = 0
    for (const { id, finishedAt } of items) {
      if (finishedAt === null || finishedAt > latest || id.startsWith(RESERVED_PREFIX)) continue
      signal?.throwIfAborted()
      try {
        if (await remove(host, id, archive === undefined ? {} : { archive })) report.purged.push(id)
        if (!dryRun) removed += 1
      } catch (error) {
        if (!isOfOneTree(error)) throw error
        report.refused.push({ id, reason: error.message })
      }
    }
    looked += items.length
    const isShifted = removed > 0 && nextCursor !== null && host.store.capabilities.paging === 'offset'
    const kept = items.length - removed
    // An offset that counts what was removed would pass over as much of what comes then.
    if (!isShifted) cursor = nextCursor
    else if (kept > 0) ({ nextCursor: cursor } = await list(kept, cursor))
    else cursor ??= ''
  } while (cursor !== null && left() > 0 && looked < MOST)
  return { ...report, nextCursor: cursor }
}

const isOfOneTree = (error: unknown): error is PurgeRefused | StoreConflict | CorruptRecord =>
  error instanceof PurgeRefused || error instanceof StoreConflict || error instanceof CorruptRecord

async function check(host: Host, id: string): Promise<boolean> {
  const found = await host.store.load(id)
  if (found === undefined) return false
  if (found.definitionId === INVOKED) await refuseUnheard(host, found)
  else await finishedTree(host, found)
  return true
}
