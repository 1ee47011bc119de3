import {
  compareBytes,
  type Execution,
  type ExecutionStore,
  type ExecutionSummary,
  encodeEvent,
  encodeExecution,
  executions,
  type HarelEvent,
  type JsonObject,
  type ListQuery,
  outbox,
  spawns,
  timers,
} from '@harel/store-base'

/** The event ids that the shared scenario uses: a store cannot list what it has processed. */
export const EVENTS = [
  'ev-root-1',
  'ev-root-2',
  'ev-a-1',
  'ev-victim',
  'ev-fast-1',
  'ev-fast-2',
  'ev-fast-3',
  'ev-reborn-old',
  'ev-ünï-😀',
  'ev-conflict',
]

/** The prefixes, behind the namespace, by which ids are searched. */
export const PREFIXES = ['order-1:', 'm_t%c*[d]?\\', 'fast', 'ün', 'none']

const wireExecution = (execution: Execution): JsonObject => {
  const { commit_token: _random, ...wire } = JSON.parse(encodeExecution(execution, execution.version, '', 'lossy'))
  return wire
}

const wireEvent = (event: HarelEvent): JsonObject => JSON.parse(encodeEvent(event))

const wireSummary = (summary: ExecutionSummary): JsonObject => ({
  id: summary.id,
  definition_id: summary.definitionId,
  status: summary.status,
  outcome: summary.outcome,
  active_path: summary.activePath,
  version: summary.version,
  parent_id: summary.parentId,
  finished_at: summary.finishedAt,
})

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

/**
 * Everything that can be read from a store, for ids that start with `ns`, in the names and the shape that Python harel
 * gives its own records: two programs that see the same in a database print the same.
 *
 * @param options `ranks`: number the queued entries from 1 instead of by their seqs, which depend on what was there
 */
export async function canonical(
  store: ExecutionStore,
  ns: string,
  options: { ranks?: boolean } = {},
): Promise<JsonObject> {
  const mine = (id: string) => id.startsWith(ns)
  const number = (entry: { seq: number }, index: number) => (options.ranks === true ? index + 1 : entry.seq)
  const list = async (query: ListQuery = {}) => {
    const listed = (await collect(executions(store, { ...query, limit: 7 }))).filter(({ id }) => mine(id))
    return store.capabilities.ordered ? listed : listed.sort((a, b) => compareBytes(a.id, b.id))
  }
  const idsOf = async (query: ListQuery) => (await list(query)).map(({ id }) => id)

  const all = await list()
  const ids = all.map(({ id }) => id)
  const perId = async <T>(read: (id: string) => Promise<T>): Promise<[string, T][]> =>
    Promise.all(ids.map(async (id): Promise<[string, T]> => [id, await read(id)]))
  const queued = (await collect(outbox(store, 3))).filter(({ targetId }) => targetId === null || mine(targetId))
  const spawned = (await collect(spawns(store, 3))).filter(({ parentId }) => mine(parentId))
  const armed = (await collect(timers(store, 1e18, 3))).filter(({ executionId }) => mine(executionId))
  const loaded = await perId(async (id) => {
    const execution = await store.load(id)
    if (execution === undefined) throw new Error(`${id} is listed but not stored`)
    return wireExecution(execution)
  })

  return {
    executions: Object.fromEntries(loaded),
    listing: {
      all: all.map(wireSummary),
      roots: await idsOf({ rootsOnly: true }),
      'status DONE|CANCELLED': await idsOf({ status: ['DONE', 'CANCELLED'] }),
      'definition Statuses': await idsOf({ definitionId: 'Statuses' }),
      'RUNNING roots of OrderFlow': await idsOf({ status: 'RUNNING', rootsOnly: true, definitionId: 'OrderFlow' }),
    },
    outbox: queued.map((entry, index) => ({
      seq: number(entry, index),
      target_id: entry.targetId,
      event: wireEvent(entry.event),
    })),
    spawns: spawned.map((entry, index) => ({
      seq: number(entry, index),
      parent_id: entry.parentId,
      child_id: entry.childId,
      root_path: entry.rootPath,
      context: entry.context,
    })),
    timers: armed
      .map(({ executionId, path, fireAt }): [string, string, number] => [executionId, path, fireAt])
      .sort((a, b) => compareBytes(a[0], b[0]) || compareBytes(a[1], b[1])),
    trace: Object.fromEntries((await perId((id) => store.readTrace(id))).filter(([, steps]) => steps.length > 0)),
    processed: Object.fromEntries(
      await perId(async (id) => {
        const known = await Promise.all(EVENTS.map((event) => store.isProcessed(id, event)))
        return EVENTS.filter((_, index) => known[index])
      }),
    ),
    ids_with_prefix: Object.fromEntries(
      await Promise.all(
        PREFIXES.map(
          async (prefix): Promise<[string, string[]]> => [
            prefix,
            (await store.idsWithPrefix(ns + prefix)).sort(compareBytes),
          ],
        ),
      ),
    ),
  }
}
