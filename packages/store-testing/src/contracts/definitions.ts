import assert from 'node:assert/strict'
import { type DefinitionRecord, type JsonValue, NotSerializable } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type Contract } from '../contract.js'
import { rejection, stored } from '../fixtures.js'

const record = (ns: string, fields: Partial<DefinitionRecord> = {}): DefinitionRecord => ({
  id: `${ns}Order`,
  version: '1',
  definition: { initial: 'a', states: { a: {}, b: [] } },
  ...fields,
})

export const definitionContract: Contract = {
  name: 'definitions',
  checks: [
    {
      title: 'a definition is loaded as it was published',
      async run({ store, ns }) {
        const published = record(ns, { publishedAt: 1700000000.25 })
        assert.deepEqual(await store.publishDefinition(published), published)
        assert.deepEqual(await store.loadDefinition(published.id, '1'), published)
      },
    },
    {
      title: 'the time of publication may be left out, and stays out',
      async run({ store, ns }) {
        await store.publishDefinition(record(ns))
        assert.deepEqual(await store.loadDefinition(`${ns}Order`, '1'), record(ns))
      },
    },
    {
      title: 'publishing a version again changes nothing and returns what was published first',
      async run({ store, ns }) {
        const first = record(ns, { publishedAt: 5 })
        await store.publishDefinition(first)
        for (const again of [record(ns, { definition: { other: true }, publishedAt: 6 }), record(ns)]) {
          assert.deepEqual(await store.publishDefinition(again), first)
        }
        assert.deepEqual(await store.loadDefinition(first.id, '1'), first)
      },
    },
    {
      title: 'of many who publish one version at once all are given the same record, the one that is stored',
      async run({ store, ns }) {
        const rivals = Array.from({ length: 8 }, (_, n) => record(ns, { definition: { n }, publishedAt: n }))
        const answers = await Promise.all(rivals.map((rival) => store.publishDefinition(rival)))
        const winner = await store.loadDefinition(`${ns}Order`, '1')
        assert(winner !== undefined)
        for (const answer of answers) assert.deepEqual(answer, winner)
      },
    },
    {
      title: 'versions are texts, each of them a definition of its own',
      async run({ store, ns }) {
        const versions = ['1', '01', '1.0', '1e0', 'V1', 'v1', ' 1', 'latest', '\u00e9', 'e\u0301']
        for (const [n, version] of versions.entries()) {
          await store.publishDefinition(record(ns, { version, definition: n }))
        }
        for (const [n, version] of versions.entries()) {
          assert.equal((await store.loadDefinition(`${ns}Order`, version))?.definition, n, version)
        }
      },
    },
    {
      title: 'id and version never run into each other',
      async run({ store, ns }) {
        const pairs: [string, string][] = [
          ['a', 'b:c'],
          ['a:b', 'c'],
          ['a"', '","b'],
          ['a","', 'b'],
          ['a', 'b'],
        ]
        for (const [n, [id, version]] of pairs.entries()) {
          await store.publishDefinition({ id: ns + id, version, definition: n })
        }
        for (const [n, [id, version]] of pairs.entries()) {
          assert.deepEqual(await store.loadDefinition(ns + id, version), { id: ns + id, version, definition: n })
        }
      },
    },
    {
      title: 'a definition that was not published is undefined',
      async run({ store, ns }) {
        await store.publishDefinition(record(ns))
        assert.equal(await store.loadDefinition(`${ns}Order`, '2'), undefined)
        assert.equal(await store.loadDefinition(`${ns}order`, '1'), undefined)
      },
    },
    {
      title: 'a definition may be any JSON value and keeps its type',
      reports: ['B15', 'B16'],
      async run({ store, ns }) {
        for (const [n, text] of [...cases.roots, '0', '{"a\\u0000":"\\u0000"}'].entries()) {
          const published = record(ns, { version: `v${n}`, definition: JSON.parse(text) as JsonValue })
          assert.deepEqual(await store.publishDefinition(published), published)
          assert.deepEqual(await store.loadDefinition(published.id, published.version), published)
        }
      },
    },
    {
      title: 'a definition that cannot be stored is refused, and its version is still free',
      async run({ store, ns }) {
        const bad = record(ns, { definition: { n: Number.NaN } })
        await rejection(() => store.publishDefinition(bad), NotSerializable)
        assert.equal(await store.loadDefinition(bad.id, '1'), undefined)
        assert.deepEqual(await store.publishDefinition(record(ns)), record(ns))
      },
    },
    {
      title: 'definitions outlive the executions that follow them',
      async run({ store, ns }) {
        await store.publishDefinition(record(ns))
        const { id } = await stored(store, ns, 'Order', { definitionId: `${ns}Order` })
        assert.equal(await store.purge(id, 1), true)
        assert.deepEqual(await store.loadDefinition(`${ns}Order`, '1'), record(ns))
      },
    },
  ],
}

/** Definitions: published once, never changed. */
export const assertDefinitions = assertionOf(definitionContract)
