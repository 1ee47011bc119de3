import { compareBytes, type ExecutionStore, executions, type ListQuery, STATUSES, type Status } from '@harel/store-base'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { TransactionSql } from 'postgres'
import { beforeEach, describe, expect, test } from 'vitest'
import { connect, execution, newSchema, open, useDatabase } from './helpers.js'

const COLLATIONS = {
  C: `LOCALE 'C'`,
  'C.UTF-8': `LOCALE 'C.UTF-8'`,
  'en-US of ICU': `LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'`,
  'en_US of the system': `LOCALE 'en_US.UTF-8'`,
}

const ROWS = 20_000

/** Rows as another program writes them: mostly running, some done, few of each other status. */
const seed = (schema: string) => `INSERT INTO ${schema}.harel_executions (id, definition_id, version, data)
  SELECT id, definition, 1, json_build_object('version', 1, 'id', id, 'definition_id', definition, 'status', status,
      'parent_id', CASE WHEN n % 11 < 5 THEN 'parent' END, 'context', json_build_object('text', repeat('x', 400)))::text
    FROM (SELECT n, (ARRAY['a', 'A', 'é', 'z', 'Z', '_', '𐀀', '｡'])[1 + n % 8] || md5(n::text) AS id, 'd' || n % 20 AS definition,
        CASE WHEN n % 3 > 0 THEN 'RUNNING' WHEN n % 5 > 0 THEN 'DONE'
          ELSE (ARRAY['${STATUSES.join("', '")}'])[1 + n % 7] END AS status
      FROM generate_series(1, ${ROWS}) n) rows`

/**
 * Rows in the order of their ids, whose columns tell of each other what a planner cannot know: half of them are old, done roots,
 * the others are new, running children, and those that pass more filters than one come last.
 */
const skewedSeed = (schema: string) => `INSERT INTO ${schema}.harel_executions (id, definition_id, version, data)
  SELECT id, definition, 1, json_build_object('version', 1, 'id', id, 'definition_id', definition, 'status', status,
      'parent_id', parent, 'context', json_build_object('text', repeat('x', 400)))::text
    FROM (SELECT to_char(n, 'FM00000') AS id, CASE WHEN n <= ${ROWS / 2} THEN 'old' ELSE 'new' END AS definition,
        CASE WHEN n <= ${ROWS / 2} OR n > ${ROWS - 50} THEN 'DONE' ELSE 'RUNNING' END AS status,
        CASE WHEN n > ${ROWS / 2} AND n <= ${ROWS - 100} THEN 'parent' END AS parent
      FROM generate_series(1, ${ROWS}) n) rows`

const statuses: readonly (Status | Status[] | undefined)[] = [
  undefined,
  ...STATUSES,
  ['RUNNING', 'DONE'],
  ['PENDING', 'FAILED', 'SUSPENDED'],
  [...STATUSES],
]
/** Every combination of filters. */
const queriesOf = (...definitions: string[]): ListQuery[] =>
  statuses.flatMap((status) =>
    [undefined, ...definitions].flatMap((definitionId) =>
      [false, true].map(
        (rootsOnly): ListQuery => ({
          rootsOnly,
          ...(status === undefined ? {} : { status }),
          ...(definitionId === undefined ? {} : { definitionId }),
        }),
      ),
    ),
  )

/** How many rows of executions a transaction has read so far, by scans of the table and by index. */
async function rowsRead(tx: TransactionSql, schema: string): Promise<{ scanned: number; fetched: number }> {
  const [row] = await tx.unsafe(`SELECT seq_tup_read::int AS scanned, idx_tup_fetch::int AS fetched
    FROM pg_stat_xact_user_tables WHERE schemaname = '${schema}' AND relname = 'harel_executions'`)
  return { scanned: row?.scanned ?? 0, fetched: row?.fetched ?? 0 }
}

type Reading = <R>(call: Promise<R>) => Promise<{ result: R; read: number }>

/** Gives a store, and how many rows were read by a call. */
async function countingOn(
  url: string,
  schema: string,
  work: (s: ExecutionStore, reading: Reading) => Promise<void>,
): Promise<void> {
  const own = await open(url, { schema, client: { max: 1 } })
  await own.transaction((s, tx) =>
    work(s, async (call) => {
      const before = await rowsRead(tx, schema)
      const result = await call
      const after = await rowsRead(tx, schema)
      expect(after.scanned).toBe(before.scanned)
      return { result, read: after.fetched - before.fetched }
    }),
  )
}

/** One more than a page of each status that is asked for. */
const allowed = ({ status }: ListQuery, limit: number): number =>
  (limit + 1) * (status === undefined ? STATUSES.length + 1 : [status].flat().length)

/** A page under each of these filters, and the one behind it. */
async function expectPages(s: ExecutionStore, reading: Reading, queries: readonly ListQuery[]): Promise<void> {
  for (const query of queries) {
    const first = await reading(s.listExecutions({ ...query, limit: 50 }))
    expect.soft(first.read, JSON.stringify(query)).toBeLessThanOrEqual(allowed(query, 50))
    const cursor = first.result.nextCursor
    if (cursor === null) continue
    const second = await reading(s.listExecutions({ ...query, limit: 50, cursor }))
    expect.soft(second.read, JSON.stringify(query)).toBeLessThanOrEqual(allowed(query, 50))
  }
}

/** The same page so often that the server might settle for a plan that knows no values. */
async function expectRuns(s: ExecutionStore, reading: Reading, queries: readonly ListQuery[]): Promise<void> {
  for (const query of queries) {
    for (let run = 0; run < 10; run++) {
      const { read } = await reading(s.listExecutions({ ...query, limit: 20 }))
      expect.soft(read, JSON.stringify(query)).toBeLessThanOrEqual(allowed(query, 20))
    }
  }
}

const queries = queriesOf('d3', 'none')

withServer('postgres', (server) => {
  describe.each(Object.entries(COLLATIONS))('in a database with the collation %s (B37)', (_name, create) => {
    const database = useDatabase(server, create)
    let schema: string
    beforeEach(async ({ skip }) => {
      skip(database.missing !== undefined, database.missing)
      if (schema !== undefined) return
      schema = newSchema()
      await open(database.url, { schema })
      const sql = connect(database.url)
      await sql.unsafe(seed(schema))
      await sql.unsafe(`VACUUM ANALYZE ${schema}.harel_executions`)
    })

    const counting = (work: (s: ExecutionStore, reading: Reading) => Promise<void>) =>
      countingOn(database.url, schema, work)

    test('no page reads more rows than a page of each status that is asked for has (weakness 38)', () =>
      counting((s, reading) => expectPages(s, reading, queries)))

    test('nor when its statement has been run so often that the server might settle for another plan', () =>
      counting((s, reading) =>
        expectRuns(
          s,
          reading,
          queries.filter((_, n) => n % 5 === 0),
        ),
      ))

    test('pages are in the order of the bytes, complete and without repetition', async () => {
      const store = await open(database.url, { schema })
      for (const query of [{}, { status: ['DONE', 'FAILED'] as Status[] }, { rootsOnly: true, definitionId: 'd3' }]) {
        const ids: string[] = []
        for await (const { id } of executions(store, { ...query, limit: 700 })) ids.push(id)
        expect(ids).toEqual([...new Set(ids)].sort(compareBytes))
        if (Object.keys(query).length === 0) expect(ids).toHaveLength(ROWS)
      }
    })

    test('the ids with a prefix come from an index alone, in the order of the bytes (weakness 42)', async () => {
      await counting(async (s, reading) => {
        for (const [prefix, least] of [
          ['', ROWS],
          ['é', 100],
          ['a1', 50],
          ['none', 0],
          ['\u{10ffff}', 0],
        ] as const) {
          const { result, read } = await reading(s.idsWithPrefix(prefix))
          expect(read).toBe(0)
          expect(result.length).toBeGreaterThanOrEqual(least)
          expect(result).toEqual([...result].sort(compareBytes))
          expect(result.filter((id) => !id.startsWith(prefix))).toEqual([])
        }
      })
    })

    test('due timers come in the order of the bytes', async () => {
      const store = await open(database.url, { schema })
      const ids = ['B', 'a', 'é', 'Z', '_', '𐀀', '｡'].map((name) => `timers/${name}`)
      for (const id of ids) {
        const timers = [{ action: 'schedule', path: 'P', fireAt: 5 } as const]
        await store.commit(execution(id), { timers })
      }
      const due = await store.dueTimers(5)
      expect(due.map(({ executionId }) => executionId)).toEqual(ids.sort(compareBytes))
      const [first] = due
      if (first !== undefined) expect(await store.dueTimers(5, { after: first })).toEqual(due.slice(1))
    })
  })

  describe('where columns tell of each other what a planner cannot know', () => {
    const database = useDatabase(server)
    const skewed = queriesOf('old', 'new', 'none')
    let schema: string
    beforeEach(async () => {
      if (schema !== undefined) return
      schema = newSchema()
      await open(database.url, { schema })
      const sql = connect(database.url)
      await sql.unsafe(skewedSeed(schema))
      await sql.unsafe(`VACUUM ANALYZE ${schema}.harel_executions`)
    })

    test('no page reads more than that, under any filters together', () =>
      countingOn(database.url, schema, (s, reading) => expectPages(s, reading, skewed)))

    test('nor when its statement has been run often', () =>
      countingOn(database.url, schema, (s, reading) => expectRuns(s, reading, skewed)))
  })

  describe('rows that another program has written', () => {
    const database = useDatabase(server)
    const payload = (id: string, fields: string) =>
      `{"version":1,"id":"${id}","definition_id":"d","status":"DONE",${fields}}`
    const odd = {
      nul: payload(
        'nul',
        String.raw`"outcome":"a\u0000b","parent_id":null,"finished_at":1.5,"context":{"\u0000":"\u0000"}`,
      ),
      lone: payload('lone', String.raw`"outcome":"\ud800","context":{"a":"\udfff\ud800","b":"\\u0000"}`),
      deep: payload('deep', `"context":{"a":${'['.repeat(190)}${']'.repeat(190)}}`),
      long: payload('long', `"context":{"a":"${'é'.repeat(3_000_000)}"}`),
      spaced: '{ "id": "spaced",\n "status" : "DONE", "version":1, "definition_id": "d" }',
    }
    const broken = {
      text: 'nonsense',
      empty: '',
      cut: '{"status":"DONE"',
      unknown: '{"status":"ODD"}',
      none: '{}',
      array: '[1]',
    }

    test('are listed like any other, however their payload is spelt, and those without a status are reported (B15)', async () => {
      const schema = newSchema()
      const warnings: string[] = []
      const store = await open(database.url, { schema, onWarning: (text) => warnings.push(text) })
      const sql = connect(database.url)
      for (const [id, data] of Object.entries({ ...odd, ...broken })) {
        await sql.unsafe(
          `INSERT INTO ${schema}.harel_executions (id, definition_id, data, version) VALUES ($1, 'd', $2, 1)`,
          [id, data],
        )
      }
      const listed = async (query: ListQuery) => {
        warnings.length = 0
        const { items } = await store.listExecutions(query)
        return items.map(({ id }) => id)
      }
      const ids = Object.keys(odd).sort()
      expect(await listed({ status: 'DONE' })).toEqual(ids)
      expect(warnings).toEqual([])
      expect(await listed({ status: [...STATUSES], definitionId: 'd' })).toEqual(ids)
      expect(warnings).toEqual([])
      for (const query of [{}, { definitionId: 'd' }, { rootsOnly: true }, { rootsOnly: true, definitionId: 'd' }]) {
        expect(await listed(query)).toEqual(ids)
        expect(warnings.sort()).toEqual(
          Object.keys(broken)
            .sort()
            .map((id) => expect.stringContaining(`"${id}"`)),
        )
      }
      const { items } = await store.listExecutions({ status: 'DONE' })
      const shown = new Map(items.map(({ id, outcome, finishedAt }) => [id, { outcome, finishedAt }]))
      expect(shown.get('nul')).toEqual({ outcome: 'a b', finishedAt: 1.5 })
      expect(shown.get('lone')).toEqual({ outcome: ' ', finishedAt: null })
    })

    test('are listed by what they hold after each change, whoever makes it', async () => {
      const schema = newSchema()
      const store = await open(database.url, { schema })
      const sql = connect(database.url)
      const held = execution('a', { status: 'RUNNING' })
      await store.commit(held)
      const write = async (version: number, status: string) => {
        const data = JSON.stringify({ version, id: 'a', definition_id: 'd', status, parent_id: 'p' })
        await sql.unsafe(`UPDATE ${schema}.harel_executions SET data = $1, version = $2 WHERE id = 'a'`, [
          data,
          version,
        ])
      }
      const summary = async () => (await store.listExecutions({ definitionId: 'd' })).items[0]
      await write(2, 'FAILED')
      expect(await summary()).toMatchObject({ version: 2, status: 'FAILED', parentId: 'p' })
      expect((await store.listExecutions({ status: 'RUNNING' })).items).toEqual([])
      const loaded = await store.load('a')
      if (loaded !== undefined) await store.commit({ ...loaded, status: 'DONE', parentId: null, definitionId: 'other' })
      expect((await store.listExecutions({ rootsOnly: true, definitionId: 'other' })).items).toMatchObject([
        { version: 3, status: 'DONE', parentId: null },
      ])
      await write(4, 'SUSPENDED')
      expect((await store.listExecutions({ status: 'SUSPENDED' })).items).toMatchObject([{ version: 4 }])
    })
  })
})
