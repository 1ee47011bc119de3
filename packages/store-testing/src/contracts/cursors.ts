import assert from 'node:assert/strict'
import { type ExecutionStore, InvalidCursor, type ListQuery } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type Contract } from '../contract.js'
import { execution, listed, rejection, stored } from '../fixtures.js'

const NAMES = Array.from({ length: 9 }, (_, n) => `n${n}`)

const seed = async (store: ExecutionStore, ns: string): Promise<ListQuery> => {
  for (const name of NAMES) await store.save(execution(ns, name))
  return { definitionId: `${ns}d`, limit: 3 }
}

/** The cursor behind the first page. */
const cursorOf = async (store: ExecutionStore, query: ListQuery): Promise<string> => {
  const { nextCursor } = await store.listExecutions(query)
  assert(nextCursor !== null, 'the first page is the last one')
  return nextCursor
}

export const cursorContract: Contract = {
  name: 'cursors',
  checks: [
    {
      title: 'without a cursor, with null and with an empty one the listing starts at its beginning',
      reports: ['B91'],
      async run({ store, ns }) {
        const query = await seed(store, ns)
        const first = await store.listExecutions(query)
        for (const cursor of [null, '', undefined]) {
          assert.deepEqual(await store.listExecutions({ ...query, cursor } as ListQuery), first)
        }
      },
    },
    {
      title: 'a damaged cursor is refused, it never starts again from the beginning',
      reports: ['B91'],
      weaknesses: [41],
      async run({ store, ns }) {
        const query = await seed(store, ns)
        const good = await cursorOf(store, query)
        const damaged = [
          ...cases.cursors,
          'MTAw',
          'LTE',
          'A'.repeat(1 << 20),
          `${good}x`,
          good.slice(0, -3),
          good.slice(0, -4),
          ` ${good}`,
          // One character after the other changed.
          ...Array.from(good, (character, n) => good.slice(0, n) + (character === 'A' ? 'B' : 'A') + good.slice(n + 1)),
        ]
        for (const cursor of damaged) {
          if (cursor === '') continue
          await rejection(() => store.listExecutions({ ...query, cursor }), InvalidCursor, cursor.slice(0, 40))
        }
      },
    },
    {
      title: 'a cursor that is no text is refused',
      reports: ['B91'],
      async run({ store, ns }) {
        const query = await seed(store, ns)
        for (const cursor of [0, 3, true, {}, ['x'], Symbol('x'), 1n]) {
          await rejection(() => store.listExecutions({ ...query, cursor } as unknown as ListQuery), InvalidCursor)
        }
      },
    },
    {
      title: 'a cursor is good under the filters of its listing only',
      reports: ['B91'],
      async run({ store, ns }) {
        const query = await seed(store, ns)
        const cursor = await cursorOf(store, query)
        const others: ListQuery[] = [
          {},
          { definitionId: `${ns}other` },
          { ...query, status: 'PENDING' },
          { ...query, rootsOnly: true },
        ]
        for (const other of others) {
          await rejection(() => store.listExecutions({ ...other, cursor }), InvalidCursor, JSON.stringify(other))
        }
      },
    },
    {
      title: 'a cursor is good under any limit and any order of the statuses',
      async run({ store, ns }) {
        await seed(store, ns)
        const filter = { definitionId: `${ns}d` }
        const cursor = await cursorOf(store, { ...filter, status: ['PENDING', 'DONE'], limit: 3 })
        const rest = await store.listExecutions({ ...filter, status: ['DONE', 'PENDING'], limit: 1000, cursor })
        assert.equal(rest.items.length, 6)
        assert.equal(rest.nextCursor, null)
      },
    },
    {
      title: 'a cursor can be used more than once',
      async run({ store, ns }) {
        const query = await seed(store, ns)
        const cursor = await cursorOf(store, query)
        const page = await store.listExecutions({ ...query, cursor })
        assert.equal(page.items.length, 3)
        assert.deepEqual(await store.listExecutions({ ...query, cursor }), page)
      },
    },
    {
      title: 'a cursor that one handle has made is good for another',
      needs: ['shared'],
      async run({ store, ns, open }) {
        const query = await seed(store, ns)
        const cursor = await cursorOf(store, query)
        const page = await store.listExecutions({ ...query, cursor })
        assert.deepEqual(await (await open()).listExecutions({ ...query, cursor }), page)
      },
    },
    {
      title: 'executions that are purged between two pages make the listing skip nothing',
      reports: ['B88'],
      weaknesses: [39],
      needs: ['keyPaging'],
      async run({ store, ns }) {
        const query = await seed(store, ns)
        const seen: string[] = []
        let cursor: string | null = null
        do {
          const page = await store.listExecutions({ ...query, cursor })
          cursor = page.nextCursor
          for (const { id, version } of page.items) {
            seen.push(id.slice(ns.length))
            assert.equal(await store.purge(id, version), true)
          }
        } while (cursor !== null)
        assert.deepEqual(seen.sort(), NAMES)
      },
    },
    {
      title: 'executions that are created between two pages make the listing repeat nothing',
      weaknesses: [39],
      needs: ['keyPaging', 'ordered'],
      async run({ store, ns }) {
        const query = await seed(store, ns)
        const first = await store.listExecutions(query)
        for (const name of ['a', 'b', 'c', 'zz']) await store.save(execution(ns, name))
        const rest = await store.listExecutions({ ...query, limit: 1000, cursor: first.nextCursor })
        assert.deepEqual(
          rest.items.map(({ id }) => id.slice(ns.length)),
          [...NAMES.slice(3), 'zz'],
        )
      },
    },
    {
      title: 'a listing goes on behind ids of any length and of any characters',
      async run({ store, ns }) {
        const odd = ['.', '..', 'a.b', "'", '\u{1f600}', '\uffff', '%', 'k.', 'x'.repeat(1024 - ns.length)]
        for (const name of odd) await stored(store, ns, name)
        const ids = await listed(store, ns, { definitionId: `${ns}d`, limit: 1 })
        assert.deepEqual(ids.sort(), odd.sort())
      },
    },
  ],
}

/** Cursors: good for their listing, refused for all else. */
export const assertCursors = assertionOf(cursorContract)
