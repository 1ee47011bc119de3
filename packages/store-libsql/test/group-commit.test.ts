import { inspect } from 'node:util'
import { type CommitChanges, type Execution, LibsqlStore, StoreConflict } from '@harel/store-libsql'
import { expect, test } from 'vitest'
import { clientOf, everything, execution, freshFile, open, rows } from './helpers.js'

const TABLES = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace']

const commits: [Partial<Execution>, CommitChanges][] = [
  [{ status: 'RUNNING', outcome: 'a\0b', activePath: '\u0001', context: { text: "it's ü😀" } }, everything('a')],
  [{ status: 'RUNNING', parentId: 'p', finishedAt: 1749667779.1 }, { trace: { n: 1 } }],
  [
    { status: 'DONE', definitionId: 'other', finishedAt: 0.1 },
    {
      timers: [
        { action: 'cancel', path: 'P' },
        { action: 'schedule', path: 'Q', fireAt: 1 / 3 },
      ],
    },
  ],
  [{ status: 'FAILED' }, { ...everything('b'), processedEventId: 'a-event' }],
  [{}, { trace: { n: 2 } }],
]

test('a commit alone writes the same rows as one together with others', async () => {
  const url = freshFile()
  const client = clientOf({ url })
  const stored: unknown[] = []
  for (const others of [0, 2]) {
    const prefix = `with${others}`
    const store = await open({ url }, { prefix, traceMax: 2 })
    const held = [execution('a'), ...Array.from({ length: others }, (_, n) => execution(`other-${n}`))]
    for (const [fields, changes] of commits) {
      for (const each of held) Object.assign(each, fields)
      const [a, ...rest] = held
      const events = changes.emits?.map(({ targetId, event }) => ({ targetId, event: { ...event, id: 'e' } })) ?? []
      if (a !== undefined) {
        await Promise.all([store.commit(a, { ...changes, emits: events }), ...rest.map((each) => store.save(each))])
      }
    }
    const tables = TABLES.map((table) => client.execute(`SELECT * FROM ${prefix}_${table}`))
    stored.push(
      (await Promise.all(tables)).map((result) =>
        result.rows
          .filter((row) => !String(row.id).startsWith('other'))
          .map((row) => ({ ...row, data: String(row.data).replace(/[0-9a-f-]{36}/, 'token') })),
      ),
    )
  }
  expect(stored[0]).toEqual(stored[1])
  expect(stored[0]).toMatchObject([[{ version: 5 }], [{}, {}], [{}], [{}, {}], [{}, {}], [{ idx: 2 }, { idx: 3 }]])
})

test.each([true, false])(
  'of commits at once that hold the same version one succeeds (grouped: %s)',
  async (groupCommit) => {
    const url = freshFile()
    const stores = [await open({ url }, { groupCommit }), await open({ url }, { groupCommit })]
    await stores[0]?.save(execution('a'))
    const held = stores.flatMap((store) => [1, 2, 3].map(() => ({ store, copy: execution('a', { version: 1 }) })))
    const outcomes = await Promise.allSettled(held.map(({ store, copy }) => store.commit(copy, everything('a'))))
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(refused).toEqual(Array(5).fill(expect.any(StoreConflict)))
    for (const conflict of refused) expect(conflict).toMatchObject({ expected: 1, found: 2 })
    expect(await rows(clientOf({ url }))).toEqual([1, 1, 1, 1, 1, 1])
  },
)

test.each([true, false])(
  'a commit that SQLite refuses fails alone and leaves nothing (grouped: %s)',
  async (groupCommit) => {
    const url = freshFile()
    const client = clientOf({ url })
    const store = new LibsqlStore(client, { groupCommit })
    await store.load('a')
    await client.execute(`CREATE TRIGGER poison BEFORE INSERT ON harel_outbox WHEN NEW.target_id = 'e4'
    BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
    const context = { secret: 'CANARY-42' }
    const held = Array.from({ length: 10 }, (_, n) => execution(`e${n}`, { context }))
    const outcomes = await Promise.allSettled(held.map((each) => store.commit(each, everything(each.id))))
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([4])
    expect(outcomes[4]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retryable: false } })
    expect(inspect([outcomes[4], store], { depth: 9, showHidden: true })).not.toContain('CANARY-42')
    expect(held[4]?.version).toBe(0)
    expect(await rows(client)).toEqual(Array(6).fill(9))
  },
)
