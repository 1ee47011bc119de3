import assert from 'node:assert/strict'
import { newEvent, outbox } from '@harel/store-base'
import { assertionOf, type Contract } from '../contract.js'
import { assertAscending, emit, event, everything, execution, loaded, outboxOf, stored } from '../fixtures.js'

export const outboxContract: Contract = {
  name: 'outbox',
  checks: [
    {
      title: 'events are queued with their commit, in its order, and leave when acknowledged',
      async run({ store, ns }) {
        const sender = execution(ns, 'sender')
        const other = execution(ns, 'other')
        assert.deepEqual(await store.commit(other), []) // 36
        const changes = everything(ns, 'sender')
        const emits = [emit(ns, 'sender', 'First'), emit(ns, 'other', 'Second'), emit(ns, 'sender', 'Third')]
        const seqs = await store.commit(sender, { ...changes, emits })
        assert.equal(seqs.length, 3) // 37
        assertAscending(seqs) // 38
        const queued = emits.map(({ targetId, event }, index) => ({ seq: seqs[index], targetId, event }))
        assert.deepEqual(await outboxOf(store, ns), queued) // 39
        const { spawns = [], trace = {} } = everything(ns, 'sender')
        assert.deepEqual(await store.commit(sender, { spawns, trace }), []) // 40
        await store.ackOutbox(seqs[1] ?? 0)
        assert.deepEqual(await outboxOf(store, ns), [queued[0], queued[2]]) // 41
        const later = await store.commit(sender, { emits: [emit(ns, 'other', 'Later')] })
        assert.equal(later.length, 1) // 42
        assert(!seqs.includes(later[0] ?? 0), 'a seq is used twice') // 43
        await store.ackOutbox([...seqs, ...later])
        assert.deepEqual(await outboxOf(store, ns), []) // 44
        for (const { id } of [sender, other]) {
          assert.equal(await store.purge(id, (await loaded(store, id)).version), true) // 45
        }
      },
    },
    {
      title: 'a seq is never given out again, not even after the queue was emptied',
      async run({ store, ns }) {
        const sender = execution(ns)
        const seen = new Set<number>()
        for (let n = 0; n < 4; n++) {
          const seqs = await store.commit(sender, { emits: [emit(ns, 'e', `a${n}`), emit(ns, 'e', `b${n}`)] })
          for (const seq of seqs) {
            assert(!seen.has(seq), `seq ${seq} is used twice`)
            seen.add(seq)
          }
          await store.ackOutbox(seqs)
        }
      },
    },
    {
      title: 'an event is queued with every field',
      async run({ store, ns }) {
        const sent = newEvent({
          id: `${ns}Ev`,
          kind: 'Paid',
          createdTime: '2026-03-29T01:30:00.000001+02:00',
          receivedTime: '1969-12-31T23:59:59Z',
          data: { amount: 0.1, nested: { list: [1, null, 'x'] } },
        })
        await store.commit(execution(ns), { emits: [{ targetId: `${ns}nobody`, event: sent }] })
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ targetId, event }) => ({ targetId, event })),
          [{ targetId: `${ns}nobody`, event: sent }],
        )
      },
    },
    {
      title: 'an event may address nobody',
      async run({ store, ns }) {
        const [seq] = await store.commit(execution(ns), { emits: [emit(ns, null, 'Log')] })
        assert.deepEqual(await outboxOf(store, ns), [{ seq, targetId: null, event: event(ns, 'Log') }])
      },
    },
    {
      title: 'events of many commits come by ascending seq',
      async run({ store, ns }) {
        const writers = Array.from({ length: 5 }, (_, n) => execution(ns, `e${n}`))
        const sent: number[] = []
        for (let round = 0; round < 3; round++) {
          const emits = ['a', 'b', 'c'].map((name) => emit(ns, 'e0', `${name}${round}`))
          const seqs = await Promise.all(writers.map((writer) => store.commit(writer, { emits })))
          for (const own of seqs) assertAscending(own)
          sent.push(...seqs.flat())
        }
        const queued = (await outboxOf(store, ns)).map(({ seq }) => seq)
        assertAscending(queued)
        assert.deepEqual(
          queued,
          sent.sort((a, b) => a - b),
        )
      },
    },
    {
      title: 'events of one execution come in the order of its versions, whichever handle has committed them',
      weaknesses: [47],
      async run({ store, ns, open, canOpen, capabilities: { shared } }) {
        const handles = canOpen && shared ? [store, await open(), await open()] : [store]
        const names: string[] = []
        await stored(store, ns)
        for (let round = 0; round < 9; round++) {
          const handle = handles[round % handles.length] ?? store
          const own = [`a${round}`, `b${round}`]
          await handle.commit(await loaded(handle, `${ns}e`), { emits: own.map((name) => emit(ns, 'e', name)) })
          names.push(...own)
        }
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ event }) => event.id.slice(ns.length)),
          names,
        )
      },
    },
    {
      title: 'acknowledging twice, or what was never queued, changes nothing and is no error',
      async run({ store, ns }) {
        const [first = 0, second = 0] = await store.commit(execution(ns), {
          emits: [emit(ns, 'e', 'a'), emit(ns, 'e', 'b')],
        })
        await store.ackOutbox(first)
        await store.ackOutbox(first)
        await store.ackOutbox([first, first])
        await store.ackOutbox([])
        await store.ackOutbox(Number.MAX_SAFE_INTEGER)
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ seq }) => seq),
          [second],
        )
      },
    },
    {
      title: 'acknowledging an event leaves the spawn of the same number',
      async run({ store, ns }) {
        await stored(store, ns, 'e', {}, everything(ns, 'e'))
        const spawns = await store.pendingSpawns()
        await store.ackOutbox(spawns.filter(({ parentId }) => parentId.startsWith(ns)).map(({ seq }) => seq))
        assert.deepEqual(await store.pendingSpawns(), spawns)
      },
    },
    {
      title: 'a page holds at most its limit, and pages that go on behind each other hold everything once',
      reports: ['B86'],
      weaknesses: [27],
      async run({ store, ns }) {
        const emits = Array.from({ length: 23 }, (_, n) => emit(ns, 'e', `n${n}`))
        const seqs = await store.commit(execution(ns), { emits })
        for (const limit of [1, 5, 23, 1000]) {
          const swept: number[] = []
          let after = (seqs[0] ?? 1) - 1
          for (;;) {
            const page = await store.pendingOutbox({ limit, after })
            assert(page.length <= limit, `a page of ${limit} holds ${page.length} entries`)
            swept.push(...page.filter(({ event }) => event.id.startsWith(ns)).map(({ seq }) => seq))
            const last = page.at(-1)
            if (last === undefined || page.length < limit) break
            assert(last.seq > after, 'the sweep does not go on')
            after = last.seq
          }
          assert.deepEqual(swept, seqs, `in pages of ${limit}`)
        }
      },
    },
    {
      title: 'a sweep that acknowledges as it goes skips nothing',
      async run({ store, ns }) {
        const emits = Array.from({ length: 12 }, (_, n) => emit(ns, 'e', `n${n}`))
        const seqs = await store.commit(execution(ns), { emits })
        const swept: number[] = []
        for await (const { seq, event } of outbox(store, 5)) {
          if (!event.id.startsWith(ns)) continue
          assert(swept.push(seq) <= 12, 'the sweep goes round in circles')
          await store.ackOutbox(seq)
        }
        assert.deepEqual(swept, seqs)
        assert.deepEqual(await outboxOf(store, ns), [])
      },
    },
    {
      title: 'events stay queued although their sender went on or was purged',
      async run({ store, ns }) {
        const sender = await stored(store, ns, 'sender', {}, { emits: [emit(ns, 'other', 'a'), emit(ns, null, 'b')] })
        await store.commit(sender)
        const queued = await outboxOf(store, ns)
        assert.equal(queued.length, 2)
        assert.equal(await store.purge(sender.id, sender.version), true)
        assert.deepEqual(await outboxOf(store, ns), queued)
      },
    },
  ],
}

/** Events: queued with their commit, in order, until acknowledged. */
export const assertOutbox = assertionOf(outboxContract)
