import assert from 'node:assert/strict'
import { InvalidArgument } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { event, execution, listed, loaded, outboxOf, rejection, spawnsOf, stored, timersOf } from '../fixtures.js'

/** The longest key, in UTF-8 bytes. */
const MAX_BYTES = 1024

/** Fills up to so many bytes with what does not compress. */
const fill = (ns: string, bytes: number): string => {
  let text = ns
  for (let n = 1; text.length < bytes; n++) text += ((n * 2654435761) >>> 0).toString(16)
  return text.slice(0, bytes)
}

const LONG = (ns: string): string[] => [
  fill(ns, 255),
  fill(ns, MAX_BYTES),
  // The last byte alone tells it from the one before.
  `${fill(ns, MAX_BYTES - 1)}~`,
  ns + '😀'.repeat((MAX_BYTES - ns.length) >> 2),
]

/** The ids beside the one at `index`: those that are alike stand together. */
const neighbours = (ids: readonly string[], index: number): string[] => [
  ...ids.slice(Math.max(0, index - 3), index),
  ...ids.slice(index + 1, index + 4),
]

/** One execution per id, each with a mark, a timer, an event, a spawn and a trace step that name it. */
async function assertCoexist({ store }: CheckContext, ids: readonly string[], tag: string): Promise<void> {
  for (const [n, id] of ids.entries()) {
    const held = execution('', id, { definitionId: id, context: { n } })
    await store.commit(held, {
      processedEventId: id,
      timers: [{ action: 'schedule', path: id, fireAt: n }],
      emits: [{ targetId: id, event: event(tag, `ev${n}`) }],
      spawns: [{ childId: id, rootPath: id, context: { tag } }],
      trace: { n },
    })
    assert.equal(held.version, 1, id)
  }
  const outbox = await outboxOf(store, tag)
  const spawns = (await store.pendingSpawns()).filter(({ context }) => context.tag === tag)
  const timers = await store.dueTimers(ids.length)
  for (const [n, id] of ids.entries()) {
    const found = await loaded(store, id)
    assert.deepEqual([found.id, found.context, found.version], [id, { n }, 1], id)
    assert.equal(await store.isProcessed(id, id), true, id)
    for (const other of neighbours(ids, n)) assert.equal(await store.isProcessed(id, other), false, `${id}, ${other}`)
    assert.deepEqual(await store.readTrace(id), [{ n, index: 0 }], id)
    assert.equal(outbox[n]?.targetId, id)
    assert.deepEqual([spawns[n]?.parentId, spawns[n]?.childId, spawns[n]?.rootPath], [id, id, id])
    assert.deepEqual(
      timers.filter(({ executionId }) => executionId === id),
      [{ executionId: id, path: id, fireAt: n }],
    )
    assert((await store.idsWithPrefix(id)).includes(id), id)
    assert.deepEqual(await listed(store, '', { definitionId: id }), [id])
  }
  for (const [n, id] of ids.entries()) {
    assert.equal(await store.purge(id, 1), true, id)
    for (const other of ids.slice(n + 1, n + 4)) assert.equal((await store.load(other))?.id, other, `after ${id}`)
  }
  assert.deepEqual(await outboxOf(store, tag), [])
}

export const idContract: Contract = {
  name: 'ids',
  checks: [
    {
      title: 'ids that look alike, like numbers, like patterns or like code are executions of their own',
      reports: ['B29', 'B30', 'B31', 'B32', 'B33', 'B37', 'B45', 'B100'],
      async run(context) {
        // As they are where nobody uses them, for a prefix takes the point from some.
        const free: string[] = []
        for (const id of cases.ids.must_all_coexist) {
          const used = (await context.store.load(id)) !== undefined
          free.push(used ? context.ns + id : id)
        }
        await assertCoexist(context, free, context.ns)
      },
    },
    {
      title: 'ids of up to 1024 bytes are told apart to the last byte',
      reports: ['B38'],
      async run(context) {
        await assertCoexist(context, LONG(context.ns), context.ns)
      },
    },
    {
      title: 'ids that share a beginning with a name of the store are ids like any other',
      weaknesses: [6],
      async run(context) {
        const names = [
          'seq:a',
          'a',
          'seq',
          'trace:a',
          'outbox',
          'exe:a',
          'processed:a',
          'a:seq',
          'timers',
          'definitions',
        ]
        await assertCoexist(context, [...names.map((name) => context.ns + name)], context.ns)
      },
    },
    {
      title: 'an empty id, one of more than 1024 bytes, one with NUL or half a surrogate pair is refused',
      reports: ['B01', 'B07', 'B38'],
      async run({ store, ns }) {
        const bad = [
          ...cases.ids.either_roundtrip_or_one_typed_error,
          ...[1025, 2048, 2049, 2700, 2800, 3000, 9000].map((bytes) => fill(ns, bytes)),
          '😀'.repeat(257),
          `${ns}\ud800`,
          `${ns}a\0b`,
        ]
        for (const id of bad) {
          const held = { ...execution(ns), id }
          const error = await rejection(() => store.commit(held), InvalidArgument, `${id.length} characters`)
          assert.equal(error.argument, 'execution.id')
          assert.equal(held.version, 0)
          await rejection(() => store.load(id), InvalidArgument)
        }
        assert.deepEqual(await store.idsWithPrefix(ns), [])
      },
    },
    {
      title: 'an id with NUL is never taken for the same id without',
      reports: ['B04', 'B07'],
      async run({ store, ns }) {
        await stored(store, ns, 'admin', {}, { processedEventId: 'admin' })
        await rejection(() => store.isProcessed(`${ns}admin`, 'adm\0in'), InvalidArgument)
        await rejection(() => store.loadForEvent(`${ns}admin`, 'admin\0'), InvalidArgument)
        await rejection(() => store.load(`${ns}adm\0in`), InvalidArgument)
        await rejection(() => store.load(`${ns}admin\0`), InvalidArgument)
        await rejection(() => store.purge(`${ns}adm\0in`, 1), InvalidArgument)
        assert.equal((await loaded(store, `${ns}admin`)).version, 1)
      },
    },
    {
      title: 'an id and what belongs to it never run into each other',
      reports: ['B29'],
      async run({ store, ns }) {
        const pairs = [
          ['a', 'b:c'],
          ['a:b', 'c'],
          ['a', 'b'],
          ['a:', 'b'],
          ['a:b', ':'],
        ] as const
        for (const [n, [id, other]] of pairs.entries()) {
          const held = (await store.load(ns + id)) ?? execution(ns, id)
          await store.commit(held, {
            processedEventId: other,
            timers: [{ action: 'schedule', path: other, fireAt: n }],
          })
        }
        for (const [id] of pairs) {
          for (const [, other] of pairs) {
            const expected = pairs.some(([a, b]) => a === id && b === other)
            assert.equal(await store.isProcessed(ns + id, other), expected, `${id}, ${other}`)
          }
        }
        assert.deepEqual(
          (await timersOf(store, ns)).map(({ executionId, path }) => [executionId.slice(ns.length), path]),
          pairs,
        )
      },
    },
    {
      title: 'the root path of a spawn may be empty, and only it',
      async run({ store, ns }) {
        const spawns = [{ childId: `${ns}c`, rootPath: '', context: {} }]
        const { id } = await stored(store, ns, 'e', { rootPath: '' }, { spawns })
        assert.equal((await spawnsOf(store, id))[0]?.rootPath, '')
        const timers = [{ action: 'schedule', path: '', fireAt: 1 }] as const
        const error = await rejection(() => store.commit(execution(ns, 'x'), { timers }), InvalidArgument)
        assert.equal(error.argument, 'changes.timers[0].path')
      },
    },
  ],
}

/** Ids: told apart by bytes, whatever they look like; one rule for what is an id. */
export const assertIds = assertionOf(idContract)
