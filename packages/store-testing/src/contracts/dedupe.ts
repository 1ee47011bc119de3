import assert from 'node:assert/strict'
import { assertionOf, type Contract } from '../contract.js'
import { event, execution, loaded, stored } from '../fixtures.js'

export const dedupeContract: Contract = {
  name: 'dedupe',
  checks: [
    {
      title: 'an event counts as processed once its commit has succeeded, and not before',
      async run({ store, ns }) {
        const held = await stored(store, ns)
        assert.equal(await store.isProcessed(held.id, `${ns}ev`), false)
        await store.commit(held, { processedEventId: `${ns}ev` })
        assert.equal(await store.isProcessed(held.id, `${ns}ev`), true)
        assert.equal(await store.isProcessed(held.id, `${ns}other`), false)
      },
    },
    {
      title: 'a mark is recorded by the very first commit too',
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', {}, { processedEventId: `${ns}ev` })
        assert.equal(await store.isProcessed(id, `${ns}ev`), true)
      },
    },
    {
      title: 'marks belong to one execution',
      reports: ['B77'],
      async run({ store, ns }) {
        await stored(store, ns, 'a', {}, { processedEventId: `${ns}ev` })
        const { id } = await stored(store, ns, 'b')
        assert.equal(await store.isProcessed(id, `${ns}ev`), false)
        assert.deepEqual((await store.loadForEvent(id, `${ns}ev`)).processed, false)
      },
    },
    {
      title: 'emitting, deferring or being addressed by an event does not mark it',
      async run({ store, ns }) {
        const sent = event(ns, 'ev')
        const { id } = await stored(
          store,
          ns,
          'e',
          { deferred: [sent] },
          { emits: [{ targetId: `${ns}e`, event: sent }] },
        )
        assert.equal(await store.isProcessed(id, sent.id), false)
      },
    },
    {
      title: 'recording an event again is no error, and it stays recorded',
      reports: ['B74'],
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', {}, { processedEventId: `${ns}ev` })
        await store.commit(held, { processedEventId: `${ns}ev` })
        await store.commit(held)
        assert.equal(held.version, 3)
        assert.equal(await store.isProcessed(held.id, `${ns}ev`), true)
      },
    },
    {
      title: 'event ids that differ in case, in form or in blanks are different',
      reports: ['B37'],
      async run({ store, ns }) {
        const marked = ['abc', '\u00e9', '1e3', 'İ', '😀'].map((id) => ns + id)
        const alike = ['ABC', 'abc ', ' abc', 'e\u0301', '1000', 'i', '\ud83d\ude01'].map((id) => ns + id)
        const held = execution(ns, 'a')
        for (const processedEventId of marked) await store.commit(held, { processedEventId })
        for (const id of marked) assert.equal(await store.isProcessed(held.id, id), true, id)
        for (const id of alike) assert.equal(await store.isProcessed(held.id, id), false, id)
      },
    },
    {
      title: 'an event id may be as long as 1024 bytes and hold anything but NUL',
      reports: ['B38'],
      async run({ store, ns }) {
        const long = ns + 'x'.repeat(1024 - ns.length)
        const odd = `${ns}'; DROP TABLE x;-- {$ne} [*?] \\ % _ \u2028 \uffff`
        const held = execution(ns)
        for (const processedEventId of [long, odd]) await store.commit(held, { processedEventId })
        for (const eventId of [long, odd]) assert.equal(await store.isProcessed(held.id, eventId), true)
        assert.equal(await store.isProcessed(held.id, `${long.slice(0, -1)}y`), false)
      },
    },
    {
      title: 'loadForEvent tells what load and isProcessed tell',
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', { context: { n: 1 } }, { processedEventId: `${ns}ev` })
        for (const eventId of [`${ns}ev`, `${ns}other`]) {
          assert.deepEqual(await store.loadForEvent(id, eventId), {
            execution: await store.load(id),
            processed: await store.isProcessed(id, eventId),
          })
        }
      },
    },
    {
      title: 'loadForEvent of an execution that is not stored tells that nothing was processed',
      async run({ store, ns }) {
        assert.deepEqual(await store.loadForEvent(`${ns}e`, `${ns}ev`), { execution: undefined, processed: false })
      },
    },
    {
      title: 'loadForEvent never pairs a newer state with an older mark',
      reports: ['B72'],
      weaknesses: [3],
      async run({ store, ns }) {
        const held = await stored(store, ns)
        for (let n = 1; n <= 20; n++) {
          const processedEventId = `${ns}ev${n}`
          const look = () => store.loadForEvent(held.id, processedEventId)
          // Some looks are under way when the commit comes, some come after it.
          const looks = [look(), look()]
          const commit = store.commit({ ...structuredClone(held), processedEvents: n }, { processedEventId })
          looks.push(look(), look())
          const [found] = await Promise.all([Promise.all(looks), commit])
          for (const { execution, processed } of found) {
            const effect = execution?.processedEvents === n
            assert(!effect || processed, 'the effect of an event is there, but not its mark')
          }
          held.version = (await loaded(store, held.id)).version
        }
      },
    },
    {
      title: 'marks are remembered for as long as the execution is stored',
      reports: ['B77'],
      needs: ['dedupeForever'],
      async run({ store, ns }) {
        const held = execution(ns)
        for (let n = 0; n < 60; n++) await store.commit(held, { processedEventId: `${ns}ev${n}` })
        for (const n of [0, 1, 31, 59]) assert.equal(await store.isProcessed(held.id, `${ns}ev${n}`), true, `ev${n}`)
      },
    },
    {
      title: 'the newest marks are remembered, as many as promised',
      reports: ['B77'],
      weaknesses: [28],
      async run({ store, ns, capabilities }) {
        const promised = capabilities.dedupe === 'forever' ? 20 : Math.min(capabilities.dedupe, 20)
        const held = execution(ns)
        for (let n = 0; n < 25; n++) await store.commit(held, { processedEventId: `${ns}ev${n}` })
        for (let n = 25 - promised; n < 25; n++) {
          assert.equal(await store.isProcessed(held.id, `${ns}ev${n}`), true, `ev${n}`)
        }
      },
    },
  ],
}

/** Which events an execution has processed. */
export const assertDedupe = assertionOf(dedupeContract)
