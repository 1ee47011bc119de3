import assert from 'node:assert/strict'
import { type CommitChanges, type JsonObject, NotSerializable } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type Contract } from '../contract.js'
import { event, execution, loaded, outboxOf, pagesOf, rejection, spawnsOf, stored } from '../fixtures.js'
import { assertRefused, assertStoredAs, places } from '../places.js'

/** What JSON has no text for, by what it is. Inside `{ at: … }`. */
const UNSTORABLE: Record<string, () => unknown> = {
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  '-Infinity': () => Number.NEGATIVE_INFINITY,
  bigint: () => 10n,
  function: () => () => 1,
  symbol: () => Symbol('s'),
  Date: () => new Date(0),
  'invalid Date': () => new Date('x'),
  Map: () => new Map([[1, 2]]),
  Set: () => new Set([1]),
  RegExp: () => /x/g,
  Error: () => new Error('x'),
  Uint8Array: () => new Uint8Array([0, 255]),
  Buffer: () => Buffer.from('x'),
  ArrayBuffer: () => new ArrayBuffer(2),
  String: () => new String('x'),
  'class instance': () =>
    new (class Foo {
      x = 1
    })(),
}

/** Containers around `{}`, `depth` of them together. */
const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
  let value = wrap(0)
  for (let n = 1; n < depth; n++) value = wrap(value)
  return value
}

const inObject = (inner: unknown) => ({ a: inner })
const inArray = (inner: unknown) => [inner]

/** JSON texts hold at most so many containers within each other: deeper ones cannot be read back by every reader. */
const MOST_CONTAINERS = 200

export const fidelityContract: Contract = {
  name: 'fidelity',
  checks: [
    {
      title: 'texts are stored exactly, as values and as keys, U+0000 included',
      reports: ['B01', 'B02', 'B08', 'B16', 'B19'],
      weaknesses: [10],
      async run(context) {
        for (const [n, { v }] of cases.strings.entries()) {
          if (!v.isWellFormed()) continue
          const value = { text: v, list: [v], [v]: v }
          await assertStoredAs(context, value, value, `text ${n}`)
        }
      },
    },
    {
      title: 'half a surrogate pair is refused, as a value and as a key',
      reports: ['B06'],
      async run(context) {
        const halves = cases.strings.filter(({ v }) => !v.isWellFormed())
        for (const [n, { v }] of [...halves, { v: '\ud83d' }, { v: '\ude00\ud83d' }].entries()) {
          await assertRefused(context, { text: v }, '.text', `half ${n}`)
          await assertRefused(context, { [v]: 1 }, '', `half key ${n}`)
        }
      },
    },
    {
      title: 'texts that look like the escape of half a pair are only text',
      async run(context) {
        const value = { a: '\\ud800', b: '\\\\udfff', '\\uDC00': '\\\ud83d\ude00' }
        await assertStoredAs(context, value, value, 'escape')
      },
    },
    {
      title: 'outcome, error, active path and kind hold any text, and listings show it',
      reports: ['B03'],
      async run({ store, ns }) {
        for (const [n, { v }] of cases.strings.entries()) {
          if (!v.isWellFormed()) continue
          const fields = { outcome: v, error: v, activePath: v, definitionFqn: v, definitionId: `${ns}d${n}` }
          const emits = [{ targetId: null, event: { ...event(ns, `ev${n}`), kind: v } }]
          await stored(store, ns, `e${n}`, fields, { emits })
          const found = await loaded(store, `${ns}e${n}`)
          assert.deepEqual([found.outcome, found.error, found.activePath, found.definitionFqn], [v, v, v, v])
          const [[summary] = []] = await pagesOf(store, { definitionId: `${ns}d${n}` })
          assert.deepEqual([summary?.outcome, summary?.activePath], [v, v])
        }
        const kinds = (await outboxOf(store, ns)).map(({ event }) => event.kind)
        assert.deepEqual(
          kinds,
          cases.strings.map(({ v }) => v).filter((v) => v.isWellFormed()),
        )
      },
    },
    {
      title: 'contexts with markers, dots, dollars, empty keys, and empty lists and objects are stored exactly',
      reports: ['B01', 'B09', 'B11', 'B14', 'B21', 'B23', 'B30'],
      async run(context) {
        for (const [n, { jsonText }] of cases.contexts_json.entries()) {
          const value: unknown = JSON.parse(jsonText)
          await assertStoredAs(context, value, value, `context ${n}`)
        }
      },
    },
    {
      title: 'values of any type keep it',
      reports: ['B16'],
      async run(context) {
        const value = { list: cases.roots.map((text): unknown => JSON.parse(text)) }
        await assertStoredAs(context, value, value, 'roots')
      },
    },
    {
      title: 'members keep their order',
      needs: ['copies'],
      async run({ store, ns }) {
        const context = JSON.parse('{"z":1,"b":{"y":1,"a":2},"a":3,"":4,"Z":5,"aa":[{"k":1,"c":2}]}') as JsonObject
        const { id } = await stored(store, ns, 'e', { context })
        assert.equal(JSON.stringify((await loaded(store, id)).context), JSON.stringify(context))
      },
    },
    {
      title: 'numbers are stored to the last bit, and -0 as 0',
      reports: ['B21', 'B24'],
      async run(context) {
        const numbers = [0.1, 0.1 + 0.2, 1 / 3, 2 ** 53 - 1, -(2 ** 53) + 1, 2 ** 31, 1e21, 1e-7, 5e-324, 1.7e308, 1e16]
        await assertStoredAs(context, { numbers }, { numbers }, 'numbers')
        await assertStoredAs(context, { zero: -0 }, { zero: 0 }, 'zero')
      },
    },
    {
      title: 'members that are undefined are dropped',
      reports: ['B22', 'B23'],
      async run(context) {
        const value = { a: undefined, b: 1, c: { d: undefined }, e: [{ f: undefined }] }
        await assertStoredAs(context, value, { b: 1, c: {}, e: [{}] }, 'undefined')
      },
    },
    {
      title: 'undefined in a list is refused, a hole in it too',
      reports: ['B22'],
      async run(context) {
        await assertRefused(context, { list: [1, undefined] }, '.list[1]', 'undefined')
        const holed = [1]
        holed[2] = 3
        await assertRefused(context, { list: holed }, '.list[1]', 'hole')
      },
    },
    {
      title: 'what JSON has no text for is refused before anything is written, with the path to it',
      reports: ['B19', 'B24', 'B25', 'B99'],
      weaknesses: [24],
      async run(context) {
        for (const [what, make] of Object.entries(UNSTORABLE)) {
          await assertRefused(context, { items: [{ at: make() }] }, '.items[0].at', what)
        }
      },
    },
    {
      title: 'a getter or a toJSON that throws, a revoked proxy and a member keyed by a symbol are refused',
      reports: ['B99'],
      async run(context) {
        const thrower = {
          get at() {
            throw new Error('getter')
          },
        }
        // Nested, because tests may copy the outermost object.
        await assertRefused(context, { in: thrower }, '.in.at', 'getter')
        const toJSON = () => {
          throw new Error('toJSON')
        }
        await assertRefused(context, { in: { toJSON } }, '.in.toJSON', 'toJSON')
        const { proxy, revoke } = Proxy.revocable({}, {})
        revoke()
        await assertRefused(context, { in: proxy }, '.in', 'revoked proxy')
        await assertRefused(context, { in: { [Symbol('k')]: 1 } }, '.in', 'symbol key')
      },
    },
    {
      title: 'a value that contains itself is refused',
      reports: ['B27', 'B99'],
      async run(context) {
        const cyclic: Record<string, unknown> = {}
        cyclic.self = { list: [cyclic] }
        await assertRefused(context, cyclic, '', 'cyclic')
      },
    },
    {
      title: 'an object without a prototype is stored as plain data',
      async run(context) {
        const value = { in: Object.assign(Object.create(null), { a: 1 }) }
        await assertStoredAs(context, value, { in: { a: 1 } }, 'bare')
      },
    },
    {
      title: '__proto__, constructor and toString are keys like any other, and nothing is polluted',
      reports: ['B13'],
      async run(context) {
        const text =
          '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":2,"in":[{"__proto__":3}]}'
        await assertStoredAs(context, JSON.parse(text), JSON.parse(text), 'proto')
        assert.equal(({} as Record<string, unknown>).polluted, undefined)
      },
    },
    {
      title: 'children and counters may be keyed __proto__ too',
      async run({ store, ns, capabilities }) {
        const child = '{"rootPath":"","finished":true,"outcome":null,"result":{},"submachine":false,"key":""}'
        const held = execution(ns, 'e', {
          children: JSON.parse(`{"__proto__":${child}}`),
          invokeSeq: JSON.parse('{"__proto__":7,"constructor":1}'),
        })
        await store.commit(held)
        const found = await store.load(held.id)
        assert.deepEqual(found, held)
        assert.equal(found === held, capabilities.identity)
      },
    },
    {
      title: 'the deepest nesting that every reader can read is stored',
      reports: ['B27'],
      weaknesses: [58],
      async run(context) {
        for (const [name, place] of Object.entries(places)) {
          for (const wrap of [inObject, inArray]) {
            const ns = `${context.ns}${name}${wrap.name}/`
            const value = { v: nested(MOST_CONTAINERS - place.enclosing - 1, wrap) }
            await place.write(context.store, ns, value as JsonObject)
            assert.deepEqual(await place.read(context.store, ns), value, name)
          }
        }
      },
    },
    {
      title: 'deeper nesting is refused, however deep',
      reports: ['B27'],
      weaknesses: [58],
      async run(context) {
        // In a context, which stands in the payload: 199 containers may be stored, 200 may not.
        for (const depth of [MOST_CONTAINERS, 1001, 100_000]) {
          for (const wrap of [inObject, inArray]) {
            await assertRefused(context, { v: nested(depth, wrap) }, '', `${depth} ${wrap.name}`)
          }
        }
      },
    },
    {
      title: 'a spawn is refused when its context is too deep for the child that it is to become',
      weaknesses: [58],
      async run({ store, ns }) {
        const spawns = [{ childId: `${ns}c`, rootPath: '', context: { v: nested(MOST_CONTAINERS - 1, inArray) } }]
        await rejection(() => store.commit(execution(ns), { spawns } as CommitChanges), NotSerializable)
        assert.deepEqual(await spawnsOf(store, ns), [])
      },
    },
    {
      title: 'nothing grows or changes when what was loaded is committed again and again',
      reports: ['B08', 'B09', 'B11', 'B14'],
      async run({ store, ns }) {
        const context = JSON.parse(`[${cases.contexts_json.map(({ jsonText }) => jsonText).join(',')}]`) as JsonObject[]
        const { id } = await stored(store, ns, 'e', { context: { context } })
        for (let n = 0; n < 3; n++) await store.commit(await loaded(store, id))
        assert.deepEqual((await loaded(store, id)).context, { context })
      },
    },
  ],
}

/** That every JSON value comes back as it was, and that whatever would not is refused. */
export const assertPayloadFidelity = assertionOf(fidelityContract)
