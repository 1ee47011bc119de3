import assert from 'node:assert/strict'
import type { ExecutionStore } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type Check, type Contract } from '../contract.js'
import { byBytes, execution, stored } from '../fixtures.js'

/** Names that wildcards, case folding and cut-off comparisons would mix up. */
const NAMES = ['r', 'r:A:0', 'r:A:0:B:0', 'rx', 'a_b:1', 'aXb:1', 'p%q:1', 'p1q:1', 's*t:1', 'sxt:1', 'u[v]:1', 'uv:1']

const found = async (store: ExecutionStore, ns: string, prefix: string): Promise<string[]> =>
  (await store.idsWithPrefix(ns + prefix)).map((id) => id.slice(ns.length)).sort(byBytes)

const literal: readonly [prefix: string, expected: string[]][] = [
  ['r:', ['r:A:0', 'r:A:0:B:0']], // 30
  ['a_b:', ['a_b:1']], // 31
  ['p%q:', ['p%q:1']], // 32
  ['s*t:', ['s*t:1']], // 33
  ['u[v]:', ['u[v]:1']], // 34
]

const literalChecks = literal.map(
  ([prefix, expected]): Check => ({
    title: `'${prefix}' finds the ids that start with exactly this`,
    reports: ['B33', 'B34'],
    async run({ store, ns }) {
      for (const name of NAMES) await store.save(execution(ns, name))
      assert.deepEqual(await found(store, ns, prefix), expected)
      for (const name of NAMES) assert.equal(await store.purge(ns + name, 1), true) // 35
    },
  }),
)

export const idsWithPrefixContract: Contract = {
  name: 'idsWithPrefix',
  checks: [
    ...literalChecks,
    {
      title: 'wildcards, escapes, case and patterns of any kind are ordinary characters',
      reports: ['B33', 'B34'],
      async run({ store, ns }) {
        for (const [n, { ids, query, expect }] of cases.prefix_search.entries()) {
          const own = `${ns}${n}/`
          for (const id of ids) await store.save(execution(own, id))
          assert.deepEqual(await found(store, own, query), expect, query)
        }
      },
    },
    {
      title: 'characters at the borders of their blocks are found, and what follows them is not',
      async run({ store, ns }) {
        const borders = ['a', 'ab', 'a\u007f', 'b', '\ud7ff', '\ud7ffx', '\ue000', '\uffff', '\uffffx', '😀', '😀x']
        const names = [...borders, '😁', '\u{10ffff}', '\u{10ffff}x']
        for (const name of names) await store.save(execution(ns, name))
        for (const prefix of names) {
          const expected = names.filter((name) => name.startsWith(prefix)).sort(byBytes)
          assert.deepEqual(await found(store, ns, prefix), expected, JSON.stringify(prefix))
        }
      },
    },
    {
      title: 'an id starts with itself, and the empty prefix finds everything',
      async run({ store, ns }) {
        const { id } = await stored(store, ns)
        assert.deepEqual(await store.idsWithPrefix(id), [id])
        assert((await store.idsWithPrefix('')).includes(id))
        assert.deepEqual(await store.idsWithPrefix(`${id}-`), [])
      },
    },
    {
      title: 'ids come in the order of their bytes',
      reports: ['B30'],
      needs: ['ordered'],
      async run({ store, ns }) {
        const names = ['b', 'a', 'B', '\u{1f600}', '\uffff', '10', '9', 'ä']
        for (const name of names) await store.save(execution(ns, name))
        assert.deepEqual(await store.idsWithPrefix(ns), names.map((name) => ns + name).sort(byBytes))
      },
    },
    {
      title: 'what was purged, queued or only traced is not found',
      async run({ store, ns }) {
        const changes = { spawns: [{ childId: `${ns}child`, rootPath: '', context: {} }] }
        const { id } = await stored(store, ns, 'e', {}, changes)
        await store.appendTrace(`${ns}traced`, {})
        assert.deepEqual(await store.idsWithPrefix(ns), [id])
        assert.equal(await store.purge(id, 1), true)
        assert.deepEqual(await store.idsWithPrefix(ns), [])
      },
    },
    {
      title: 'there is no limit to how many ids are found',
      async run({ store, ns }) {
        await Promise.all(Array.from({ length: 130 }, (_, n) => store.save(execution(ns, `n${n}`))))
        assert.equal(new Set(await store.idsWithPrefix(ns)).size, 130)
      },
    },
  ],
}

/** Ids by their beginning, literally. */
export const assertIdsWithPrefix = assertionOf(idsWithPrefixContract)
