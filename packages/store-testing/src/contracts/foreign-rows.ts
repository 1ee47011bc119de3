import assert from 'node:assert/strict'
import { CorruptRecord, type JsonValue, NotSerializable } from '@harel/store-base'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { conflict, emit, execution, listed, loaded, outboxOf, rejection, stored } from '../fixtures.js'

/** A payload as another program writes it: its own order of fields, spaces, unknown fields. */
const foreign = (id: string, fields: Record<string, JsonValue>): string =>
  JSON.stringify({ id, definition_id: 'Order', status: 'RUNNING', version: 1, unknown: [1], ...fields }, null, 1)

/** Opens a store whose warnings are collected. */
async function openNoting({ open }: CheckContext, options: { numbers?: 'lossy' } = {}) {
  const warnings: string[] = []
  const store = await open({ ...options, onWarning: (message) => warnings.push(message) })
  assert(store !== undefined)
  return { store, warnings }
}

export const foreignRowContract: Contract = {
  name: 'rows of others',
  checks: [
    {
      title: 'an execution that another program stored is loaded, committed and purged like any other',
      reports: ['B17', 'B28'],
      needs: ['insertExecutionText'],
      async run({ store, ns, probes }) {
        // Up to where texts, 32 bits and doubles end.
        for (const version of [3, 9, 2 ** 31 - 2, 2 ** 31, Number.MAX_SAFE_INTEGER - 1]) {
          const id = `${ns}e${version}`
          const query = { definitionId: `${ns}d`, status: 'RUNNING' } as const
          // As a store might mark a text that its columns cannot hold.
          const outcome = '\u0001"it"'
          const text = foreign(id, { definition_id: `${ns}d`, version, context: { a: 1 }, outcome })
          try {
            await probes.insertExecutionText?.(id, version, text)
          } catch (error) {
            // A column may hold no more than 32 bits; then there is nothing to be tried.
            if (version >= 2 ** 31) continue
            throw error
          }
          const held = await loaded(store, id)
          assert.deepEqual([held.version, held.status, held.context, held.priority], [version, 'RUNNING', { a: 1 }, 0])
          assert.deepEqual(
            (await store.listExecutions(query)).items.map((item) => [item.version, item.outcome]),
            [[version, outcome]],
          )
          await conflict(() => store.commit({ ...held, version: version - 1 }), id, version - 1, version)
          await store.commit({ ...held, status: 'DONE' })
          assert.deepEqual(await listed(store, ns, query), [])
          assert.deepEqual(await store.idsWithPrefix(id), [id])
          assert.equal((await loaded(store, id)).version, version + 1)
          assert.equal(await store.purge(id, version), false)
          assert.equal(await store.purge(id, version + 1), true)
        }
      },
    },
    {
      title:
        'an execution that another program stored at version 0 is taken by one first commit, alone or among others',
      needs: ['insertExecutionText'],
      async run({ store, ns, probes }) {
        const insert = async (name: string) => {
          const id = `${ns}${name}`
          assert.equal(await store.load(id), undefined)
          await probes.insertExecutionText?.(id, 0, foreign(id, { version: 0, context: { by: 'others' } }))
          const held = await loaded(store, id)
          assert.equal(held.version, 0)
          return { ...held, context: { by: name } }
        }
        const alone = await insert('alone')
        const among = [await insert('x'), await insert('y')]
        const stale = among.map((held) => ({ ...held, context: { by: 'nobody' } }))
        const news = ['a', 'b', 'c'].map((name) => execution(ns, name))
        const seqs = await store.commit(alone, { emits: [emit(ns, 'e', 'a')] })
        assert.equal(seqs.length, 1)
        const committed = [...among, ...news]
        const given = await Promise.all(
          committed.map((held) => store.commit(held, { emits: [emit(ns, 'e', 'a')], processedEventId: 'ev' })),
        )
        assert.equal(new Set([seqs, ...given].flat()).size, 1 + committed.length)
        for (const { id, context } of [alone, ...committed]) {
          const held = await loaded(store, id)
          assert.deepEqual([held.version, held.context], [1, context])
        }
        for (const held of stale) await conflict(() => store.commit(held), held.id, 0, 1)
        for (const { id } of committed) assert.equal(await store.isProcessed(id, 'ev'), true)
      },
    },
    {
      title: 'a field that only another program knows outlives the commits of this one',
      weaknesses: [25],
      needs: ['insertExecutionText', 'executionText'],
      async run({ store, ns, probes }) {
        const id = `${ns}e`
        const ofOthers = [
          ['unknown', [1]],
          ['labels', { colour: 'réd', of: null }],
          ['toString', 'a\0b'],
          ['__proto__', { polluted: true }],
        ] as const
        await probes.insertExecutionText?.(id, 1, foreign(id, Object.fromEntries(ofOthers)))
        const held = await store.load(id)
        assert(held !== undefined)
        await store.commit({ ...held, status: 'DONE' })
        await store.commit({ ...held, id: `${id}2`, version: 0 })
        assert(!(await probes.executionText?.(`${id}2`))?.includes('colour'), 'another execution has them, too')
        const again = await store.load(id)
        assert(again !== undefined)
        again.context = { n: 1 }
        for (const version of [3, 4]) {
          await store.commit(again)
          const payload = JSON.parse((await probes.executionText?.(id)) ?? '')
          assert.deepEqual([payload.version, payload.status, payload.context], [version, 'DONE', { n: 1 }])
          const entries = Object.entries(payload).slice(-ofOthers.length)
          assert.deepEqual(entries.sort(), ofOthers.map((entry) => [...entry]).sort())
        }
      },
    },
    {
      title: 'a payload that cannot be read is a CorruptRecord that shows nothing of it, and disturbs nobody else',
      needs: ['insertExecutionText'],
      async run(context) {
        const { ns, probes } = context
        const { store } = await openNoting(context)
        const broken = [
          '{"version":1',
          '{}',
          '[]',
          foreign(`${ns}other`, {}),
          foreign(`${ns}x3`, { status: 'CANARY-42' }),
        ]
        for (const [n, text] of broken.entries()) await probes.insertExecutionText?.(`${ns}x${n}`, 1, text)
        await stored(store, ns, 'fine')
        for (const n of broken.keys()) {
          const error = await rejection(() => store.load(`${ns}x${n}`), CorruptRecord, broken[n])
          assert(error.record.includes(`${ns}x${n}`) && !error.message.includes('CANARY-42'), error.message)
          await rejection(() => store.loadForEvent(`${ns}x${n}`, 'ev'), CorruptRecord)
        }
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d` }), ['fine'])
        assert.equal((await loaded(store, `${ns}fine`)).version, 1)
        for (const n of broken.keys()) await store.purge(`${ns}x${n}`, 1)
      },
    },
    {
      title: 'an execution whose payload cannot be read is reported by the listings that it may belong to',
      weaknesses: [10],
      needs: ['insertExecutionText', 'open'],
      async run(context) {
        const { ns, probes } = context
        const { store, warnings } = await openNoting(context)
        const broken = ['{"version":1', '{}', foreign(`${ns}x2`, { status: 'CANARY-42' })]
        for (const [n, text] of broken.entries()) await probes.insertExecutionText?.(`${ns}x${n}`, 1, text)
        await stored(store, ns, 'fine')
        for (const query of [{}, { rootsOnly: true }]) {
          warnings.length = 0
          assert((await listed(store, ns, query)).includes('fine'))
          for (const n of broken.keys()) {
            const told = warnings.filter((message) => message.includes(`${ns}x${n}`))
            assert.equal(told.length, 1, `${broken[n]} in ${JSON.stringify(query)}: ${told.length} warnings`)
            assert(!told[0]?.includes('CANARY-42'), told[0])
          }
        }
        for (const n of broken.keys()) await store.purge(`${ns}x${n}`, 1)
      },
    },
    {
      title: 'a number that JavaScript does not hold is reported, and never written back as another',
      reports: ['B18', 'B21'],
      weaknesses: [24],
      needs: ['insertExecutionText', 'executionText', 'open'],
      async run(context) {
        const { ns, probes } = context
        const { store, warnings } = await openNoting(context)
        for (const [n, number] of ['9007199254740993', '-90071992547409931', 'NaN', '-Infinity'].entries()) {
          const id = `${ns}e${n}`
          const text = foreign(id, { context: { list: ['#'] } }).replace('"#"', number)
          await probes.insertExecutionText?.(id, 1, text)
          const held = await loaded(store, id)
          const original = await store.load(id)
          assert(original !== undefined)
          assert(
            warnings.some((message) => message.includes(id) && message.includes(number)),
            `${number} must be reported`,
          )
          assert.equal(held.version, 1)
          await rejection(() => store.commit(original), NotSerializable, number)
          await rejection(() => store.commit({ ...original, status: 'DONE' }), NotSerializable, number)
          assert.equal(original.version, 1)
          assert.equal(await probes.executionText?.(id), text)
          await store.purge(id, 1)
        }
      },
    },
    {
      title: 'with lossy numbers such an execution is committed, rounded',
      needs: ['insertExecutionText', 'open'],
      async run(context) {
        const { ns, probes } = context
        const { store } = await openNoting(context, { numbers: 'lossy' })
        const text = foreign(`${ns}e`, { context: { n: '#' } }).replace('"#"', '9007199254740993')
        await probes.insertExecutionText?.(`${ns}e`, 1, text)
        const held = await store.load(`${ns}e`)
        assert(held !== undefined)
        await store.commit(held)
        assert.deepEqual((await loaded(store, held.id)).context, { n: 9007199254740992 })
      },
    },
    {
      title: 'an event that cannot be read is reported, stops nobody, and can be acknowledged',
      weaknesses: [23],
      needs: ['insertOutboxText', 'open'],
      async run(context) {
        const { ns, probes } = context
        const { store, warnings } = await openNoting(context)
        const held = execution(ns)
        const seqs = await store.commit(held, { emits: [emit(ns, 'e', 'before')] })
        for (const text of ['{"kind"', '[]', '{"id":"CANARY-42"}']) await probes.insertOutboxText?.(held.id, text)
        seqs.push(...(await store.commit(held, { emits: [emit(ns, 'e', 'a'), emit(ns, 'e', 'b')] })))
        const before = warnings.length
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ seq }) => seq),
          seqs,
        )
        assert.equal(warnings.length - before, 3)
        assert(!warnings.some((message) => message.includes('CANARY-42')))
        const [first = 0, second = 0, third = 0] = seqs
        // A page is not cut short by what cannot be read, for a short page means the end.
        assert.deepEqual(
          (await store.pendingOutbox({ after: first, limit: 2 })).map(({ seq }) => seq),
          [second, third],
        )
        const bad = Array.from({ length: second - first - 1 }, (_, n) => first + 1 + n)
        await store.ackOutbox(bad)
        warnings.length = 0
        assert.equal((await outboxOf(store, ns)).length, 3)
        assert.deepEqual(warnings, [])
      },
    },
    {
      title: 'whoever asks is told the seq of each event that cannot be read, and nobody else is',
      weaknesses: [23],
      needs: ['insertOutboxText', 'open'],
      async run(context) {
        const { ns, probes } = context
        const { store, warnings } = await openNoting(context)
        const held = execution(ns)
        await store.commit(held, { emits: [emit(ns, 'e', 'a')] })
        for (const text of ['{"kind"', '{"id":"CANARY-42"}']) await probes.insertOutboxText?.(held.id, text)
        const [last = 0] = await store.commit(held, { emits: [emit(ns, 'e', 'b')] })
        const told: number[] = []
        const before = warnings.length
        const page = await store.pendingOutbox({
          limit: 1,
          after: last - 3,
          onUnreadable: (seq, error) => {
            assert(error instanceof CorruptRecord && !error.message.includes('CANARY-42'), error.message)
            told.push(seq)
          },
        })
        assert.deepEqual([page.map(({ seq }) => seq), told], [[last], [last - 2, last - 1]])
        assert.equal(warnings.length, before)
        await store.ackOutbox(told)
      },
    },
    {
      title: 'an event that cannot be read is removed with the execution that it is addressed to',
      needs: ['insertOutboxText', 'rows'],
      async run(context) {
        const { ns, probes } = context
        const { store } = await openNoting(context)
        const before = await probes.rows?.()
        const held = await stored(store, ns)
        await probes.insertOutboxText?.(held.id, 'garbage')
        assert.equal(await store.purge(held.id, 1), true)
        assert.deepEqual(await probes.rows?.(), before)
      },
    },
  ],
}

/** What other programs wrote into the same database. */
export const assertForeignRows = assertionOf(foreignRowContract)
