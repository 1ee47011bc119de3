import assert from 'node:assert/strict'
import { type Execution, type ExecutionStore, executions, type ListQuery, type Status } from '@harel/store-base'
import { assertionOf, type Check, type Contract } from '../contract.js'
import { all, byBytes, execution, listed, loaded, pagesOf, stored } from '../fixtures.js'

const SEEDS: readonly [name: string, definition: string, status: Status, parent?: string][] = [
  ['e00', 'd1', 'RUNNING'],
  ['e01', 'd1', 'RUNNING'],
  ['e02', 'd1', 'DONE'],
  ['e03', 'd1', 'DONE'],
  ['e04', 'd1', 'SUSPENDED'],
  ['e05', 'd2', 'RUNNING'],
  ['e06', 'd2', 'RUNNING'],
  ['e07', 'd2', 'DONE'],
  ['e08', 'd2', 'SUSPENDED'],
  ['e09', 'd2', 'FAILED'],
  ['e10', 'd2', 'RUNNING', 'e05'],
  ['e11', 'd2', 'RUNNING', 'e05'],
]

const FINISHED_AT = 1700000000.5

/** Twelve executions of two definitions; in no order, so that the order of a listing is the store's own. */
async function seed(store: ExecutionStore, ns: string): Promise<void> {
  for (const [name, definition, status, parent] of SEEDS.toSorted(([a], [b]) => a.charCodeAt(2) - b.charCodeAt(2))) {
    await store.save(
      execution(ns, name, {
        definitionId: ns + definition,
        status,
        parentId: parent === undefined ? null : ns + parent,
        finishedAt: status === 'DONE' ? FINISHED_AT : null,
      }),
    )
  }
}

/** Which executions filters find, in pages of four. */
const filters: readonly (Omit<Check, 'run'> & { query: (ns: string) => ListQuery; found: string[] })[] = [
  {
    title: 'a definition finds exactly its executions', // 1
    query: (ns) => ({ definitionId: `${ns}d1` }),
    found: ['e00', 'e01', 'e02', 'e03', 'e04'],
  },
  {
    title: 'a definition and a status must both hold', // 2
    query: (ns) => ({ definitionId: `${ns}d2`, status: ['RUNNING'] }),
    found: ['e05', 'e06', 'e10', 'e11'],
  },
  {
    title: 'one of several statuses must hold', // 3
    query: (ns) => ({ definitionId: `${ns}d2`, status: ['DONE', 'FAILED'] }),
    found: ['e07', 'e09'],
  },
  {
    title: 'a status may be given by itself',
    query: (ns) => ({ definitionId: `${ns}d2`, status: 'DONE' }),
    found: ['e07'],
  },
  {
    title: 'rootsOnly leaves out executions with a parent', // 4
    query: (ns) => ({ definitionId: `${ns}d2`, rootsOnly: true }),
    found: ['e05', 'e06', 'e07', 'e08', 'e09'],
  },
  {
    title: 'all filters together must hold', // 5
    query: (ns) => ({ definitionId: `${ns}d2`, status: ['RUNNING'], rootsOnly: true }),
    found: ['e05', 'e06'],
  },
  {
    title: 'rootsOnly: false filters nothing out',
    query: (ns) => ({ definitionId: `${ns}d2`, rootsOnly: false, status: 'RUNNING' }),
    found: ['e05', 'e06', 'e10', 'e11'],
  },
  {
    title: 'an empty list of statuses matches nothing',
    reports: ['B90'],
    query: (ns) => ({ definitionId: `${ns}d1`, status: [] }),
    found: [],
  },
  {
    title: 'a definition is compared literally: by no pattern, no case, no part of it',
    reports: ['B32', 'B33'],
    query: (ns) => ({ definitionId: `${ns}d_` }),
    found: [],
  },
  {
    title: 'a definition that looks like SQL or a query is only text',
    reports: ['B100'],
    query: (ns) => ({ definitionId: `${ns}d1' OR '1'='1` }),
    found: [],
  },
]

const filterChecks = filters.map(
  ({ query, found, ...guarantee }): Check => ({
    ...guarantee,
    async run({ store, ns, capabilities }) {
      await seed(store, ns)
      const ids = await listed(store, ns, { ...query(ns), limit: 4 })
      assert.deepEqual(capabilities.ordered ? ids : ids.sort(), found)
    },
  }),
)

export const listingContract: Contract = {
  name: 'listing',
  checks: [
    ...filterChecks,
    {
      title: 'a summary tells what its execution is, without context and history',
      async run({ store, ns }) {
        const fields: Partial<Execution> = {
          status: 'DONE',
          outcome: 'approved',
          activePath: 'Order/Ünd',
          parentId: `${ns}parent`,
          finishedAt: FINISHED_AT,
          context: { secret: 1 },
          history: { h: 'x' },
        }
        const held = await stored(store, ns, 'e', fields)
        await store.commit(held)
        const [[summary] = []] = await pagesOf(store, { definitionId: `${ns}d` })
        assert.deepEqual(summary, {
          id: held.id,
          definitionId: held.definitionId,
          status: 'DONE',
          outcome: 'approved',
          activePath: 'Order/Ünd',
          version: 2,
          parentId: `${ns}parent`,
          finishedAt: FINISHED_AT,
        })
      },
    },
    {
      title: 'the first page of a filtered listing holds items that match it',
      weaknesses: [40],
      async run({ store, ns }) {
        await seed(store, ns)
        const { items } = await store.listExecutions({ definitionId: `${ns}d1`, status: ['RUNNING'], limit: 1 })
        const [first] = items
        assert(first !== undefined, 'the page is empty')
        assert.deepEqual([first.definitionId, first.status, first.parentId], [`${ns}d1`, 'RUNNING', null]) // 6
        assert(!('context' in first) && !('history' in first)) // 7
        assert.equal(first.finishedAt, null) // 8
        const done = await store.listExecutions({ definitionId: `${ns}d1`, status: ['DONE'], limit: 10 })
        assert.equal(done.items.length, 2)
        for (const { finishedAt } of done.items) assert.equal(finishedAt, FINISHED_AT) // 9
      },
    },
    {
      title: 'items come sorted by id, and a page starts where the one before ended',
      needs: ['ordered'],
      async run({ store, ns }) {
        await seed(store, ns)
        const all = await listed(store, ns, { definitionId: `${ns}d1`, limit: 100 })
        assert.deepEqual(all, ['e00', 'e01', 'e02', 'e03', 'e04']) // 10
        const { items, nextCursor } = await store.listExecutions({ definitionId: `${ns}d1`, limit: 2 })
        assert(items.length <= 2) // 11
        assert.deepEqual(
          items.map(({ id }) => id),
          [`${ns}e00`, `${ns}e01`], // 12
        )
        const second = await store.listExecutions({ definitionId: `${ns}d1`, limit: 2, cursor: nextCursor })
        assert.deepEqual(
          second.items.map(({ id }) => id),
          [`${ns}e02`, `${ns}e03`],
        )
      },
    },
    {
      title: 'ids are ordered by their bytes',
      needs: ['ordered'],
      async run({ store, ns }) {
        const names = ['a', 'B', 'b', 'ä', 'a\u0301', 'z', '\ue000', '\uffff', '\u{1f600}', '10', '9', '_', 'aa', '~']
        for (const name of names) await stored(store, ns, name)
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d` }), names.sort(byBytes))
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d`, limit: 3 }), names)
      },
    },
    {
      title: 'a listing shows the state that was committed last, its definition included',
      weaknesses: [45],
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', { definitionId: `${ns}d1`, status: 'RUNNING', parentId: `${ns}p` })
        await store.commit({ ...held, definitionId: `${ns}d2`, status: 'DONE', parentId: null, finishedAt: 5 })
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d1` }), [])
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d2`, status: 'RUNNING' }), [])
        const [[found] = []] = await pagesOf(store, { definitionId: `${ns}d2`, status: 'DONE', rootsOnly: true })
        assert.deepEqual([found?.version, found?.finishedAt], [2, 5])
        await store.commit({ ...(await loaded(store, held.id)), status: 'RUNNING', finishedAt: null })
        const [[again] = []] = await pagesOf(store, { definitionId: `${ns}d2` })
        assert.deepEqual([again?.status, again?.finishedAt], ['RUNNING', null])
      },
    },
    {
      title: 'a refused commit does not show in a listing',
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', { status: 'RUNNING' })
        await assert.rejects(store.commit({ ...held, version: 0, status: 'DONE' }))
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d`, status: 'DONE' }), [])
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d`, status: 'RUNNING' }), ['e'])
      },
    },
    {
      title: 'a purged execution is listed no more',
      async run({ store, ns }) {
        const held = await stored(store, ns)
        assert.equal(await store.purge(held.id, 1), true)
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d` }), [])
      },
    },
    {
      title: 'without filters everything is listed',
      reports: ['B91'],
      async run({ store, ns }) {
        await seed(store, ns)
        const found = (await all(executions(store, { limit: 1000 }))).map(({ id }) => id)
        assert.deepEqual(
          found.filter((id) => id.startsWith(ns)).sort(),
          SEEDS.map(([name]) => ns + name),
        )
      },
    },
    {
      title: 'a page holds 100 items when nothing else is said, and the last page has no cursor',
      async run({ store, ns }) {
        for (let n = 0; n < 101; n++) await store.save(execution(ns, `n${n}`))
        const query = { definitionId: `${ns}d` }
        const first = await store.listExecutions(query)
        assert(first.items.length <= 100, `a page holds ${first.items.length} items`)
        assert(first.nextCursor !== null, 'the listing ends too early')
        assert.equal((await store.listExecutions({ ...query, limit: 1000 })).nextCursor, null)
        assert.equal(new Set(await listed(store, ns, query)).size, 101)
      },
    },
    {
      title: 'pages of any size hold everything, each item once, and never more than their limit',
      reports: ['B86'],
      weaknesses: [40],
      async run({ store, ns }) {
        const names = Array.from({ length: 40 }, (_, n) => `n${n}`).sort(byBytes)
        // All the same but for the id: there is nothing else to go on behind.
        for (const name of names) await store.save(execution(ns, name, { status: 'DONE', finishedAt: 1700000000.123 }))
        for (const limit of [1, 7, 20, 40, 41, 1000]) {
          const ids = await listed(store, ns, { definitionId: `${ns}d`, limit })
          assert.deepEqual(ids.sort(byBytes), names, `in pages of ${limit}`)
        }
      },
    },
  ],
}

/** Listings: filters, order, pages. */
export const assertListing = assertionOf(listingContract)
