import assert from 'node:assert/strict'
import { type ExecutionStore, StoreConflict } from '@harel/store-base'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { emit, everything, execution, loaded, outboxOf, spawnsOf, stored, timersOf } from '../fixtures.js'

/** The handles on one database: two where it can be shared. */
async function handlesOf({
  store,
  open,
  capabilities,
  canOpen,
}: CheckContext): Promise<readonly [ExecutionStore, ExecutionStore]> {
  return [store, capabilities.shared && canOpen ? await open() : store]
}

/** Far more races than twelve writers lose. */
const MOST_CONFLICTS = 200

/** Loads, adds one to a counter and commits, until that succeeds. Returns how often it conflicted. */
async function increment(store: ExecutionStore, ns: string, event: string): Promise<number> {
  for (let conflicts = 0; conflicts < MOST_CONFLICTS; conflicts++) {
    const held = await loaded(store, `${ns}e`)
    held.context = { n: Number(held.context.n) + 1 }
    try {
      await store.commit(held, {
        processedEventId: ns + event,
        emits: [emit(ns, null, event)],
        timers: [{ action: 'schedule', path: event, fireAt: 1 }],
        spawns: [{ childId: ns + event, rootPath: '', context: {} }],
        trace: { event },
      })
      return conflicts
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error
      assert.equal(error.expected, held.version)
      if (error.found !== null) assert(error.found > held.version, 'the version found is not newer than the one held')
    }
  }
  assert.fail(`a commit has lost ${MOST_CONFLICTS} races`)
}

export const concurrencyContract: Contract = {
  name: 'concurrency',
  checks: [
    {
      title: 'of many who commit one version at once exactly one wins, and only what it wrote is stored',
      reports: ['B56', 'B75'],
      async run(context) {
        const { store, ns } = context
        const handles = await handlesOf(context)
        const held = await stored(store, ns)
        for (let round = 1; round <= 5; round++) {
          const rivals = Array.from({ length: 6 }, (_, n) => ({ ...structuredClone(held), context: { n } }))
          const outcomes = await Promise.allSettled(
            rivals.map((rival, n) => {
              // Of one event, by which a commit whose reply was lost is known.
              const changes = { ...everything(ns, `${round}.${n}`), processedEventId: `${ns}${round}` }
              return (handles[n % 2] ?? store).commit(rival, changes)
            }),
          )
          const winners = outcomes.flatMap(({ status }, n) => (status === 'fulfilled' ? [n] : []))
          assert.equal(winners.length, 1)
          for (const [n, outcome] of outcomes.entries()) {
            assert.equal(rivals[n]?.version, n === winners[0] ? round + 1 : round)
            if (outcome.status === 'rejected') assert(outcome.reason instanceof StoreConflict, String(outcome.reason))
          }
          const now = await loaded(store, held.id)
          assert.deepEqual([now.version, now.context], [round + 1, { n: winners[0] }])
          assert.equal((await outboxOf(store, ns)).length, round)
          assert.equal((await spawnsOf(store, ns)).length, round)
          held.version = now.version
        }
      },
    },
    {
      title: 'many writers of one execution, each going on until it has succeeded, lose and repeat nothing',
      async run(context) {
        const { store, ns } = context
        const handles = await handlesOf(context)
        await stored(store, ns, 'e', { context: { n: 0 } })
        const events = Array.from({ length: 12 }, (_, n) => `ev${n}`)
        await Promise.all(events.map((event, n) => increment(handles[n % 2] ?? store, ns, event)))
        const held = await loaded(store, `${ns}e`)
        assert.deepEqual([held.version, held.context], [13, { n: 12 }])
        const sorted = (names: string[]) => names.map((name) => name.replace(ns, '')).sort()
        assert.deepEqual(sorted((await outboxOf(store, ns)).map(({ event }) => event.id)), events.toSorted())
        assert.deepEqual(sorted((await spawnsOf(store, ns)).map(({ childId }) => childId)), events.toSorted())
        assert.deepEqual(sorted((await timersOf(store, ns)).map(({ path }) => path)), events.toSorted())
        for (const event of events) assert.equal(await store.isProcessed(held.id, ns + event), true, event)
        assert.equal((await store.readTrace(held.id)).at(-1)?.index, 11)
      },
    },
    {
      title: 'many writers of many executions do not disturb each other, and no seq is given out twice',
      reports: ['B52', 'B56', 'B68'],
      async run(context) {
        const { store, ns } = context
        const handles = await handlesOf(context)
        const seqs = await Promise.all(
          Array.from({ length: 40 }, async (_, n) => {
            const held = execution(ns, `e${n}`)
            const own: number[] = []
            for (let step = 0; step < 3; step++) {
              const emits = [emit(ns, `e${n}`, `${n}.${step}.a`), emit(ns, null, `${n}.${step}.b`)]
              own.push(...(await (handles[(n + step) % 2] ?? store).commit(held, { emits })))
            }
            assert.equal(held.version, 3)
            return own
          }),
        )
        const given = seqs.flat()
        assert.equal(new Set(given).size, 240)
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ seq }) => seq),
          given.sort((a, b) => a - b),
        )
        for (let n = 0; n < 40; n++) assert.equal((await loaded(store, `${ns}e${n}`)).version, 3)
      },
    },
    {
      title: 'good commits beside conflicting and refused ones succeed',
      reports: ['B67'],
      weaknesses: [11, 19],
      async run(context) {
        const { store, ns } = context
        const handles = await handlesOf(context)
        await stored(store, ns, 'taken')
        const outcomes = await Promise.allSettled(
          Array.from({ length: 30 }, (_, n) => {
            const handle = handles[n % 2] ?? store
            if (n % 3 === 0) return handle.commit(execution(ns, 'taken', { version: 7 }), everything(ns, 'taken'))
            if (n % 3 === 1) return handle.commit(execution(ns, `bad${n}`, { context: { n: Number.NaN } }))
            return handle.commit(execution(ns, `good${n}`), everything(ns, `good${n}`))
          }),
        )
        for (const [n, { status }] of outcomes.entries()) {
          assert.equal(status, n % 3 === 2 ? 'fulfilled' : 'rejected', `commit ${n}`)
        }
        assert.equal((await store.idsWithPrefix(`${ns}good`)).length, 10)
        assert.deepEqual(await store.idsWithPrefix(`${ns}bad`), [])
        assert.equal((await outboxOf(store, ns)).length, 10)
      },
    },
    {
      title: 'what one handle has committed, another sees at once',
      needs: ['shared'],
      async run(context) {
        const { ns } = context
        const [store, other] = await handlesOf(context)
        const held = execution(ns)
        for (let version = 1; version <= 5; version++) {
          const [writer = store, reader = other] = version % 2 === 0 ? [other, store] : [store, other]
          const [seq] = await writer.commit(held, everything(ns, 'e'))
          assert.deepEqual(await reader.load(held.id), held)
          assert.equal(await reader.isProcessed(held.id, `${ns}e-ev`), true)
          assert.equal((await outboxOf(reader, ns)).at(-1)?.seq, seq)
          assert.equal((await reader.readTrace(held.id)).at(-1)?.index, version - 1)
        }
        assert.equal(await other.purge(held.id, 5), true)
        assert.equal(await store.load(held.id), undefined)
      },
    },
    {
      title: 'of two handles that acknowledge, delete and purge the same things neither fails',
      needs: ['shared'],
      async run(context) {
        const { ns } = context
        const [store, other] = await handlesOf(context)
        for (let n = 0; n < 5; n++) {
          const held = execution(ns, `e${n}`)
          const seqs = await store.commit(held, everything(ns, `e${n}`))
          const spawns = (await spawnsOf(store, held.id)).map(({ seq }) => seq)
          await Promise.all([store, other].map((handle) => handle.ackOutbox(seqs)))
          await Promise.all([store, other].map((handle) => handle.ackSpawn(spawns)))
          await Promise.all([store, other].map((handle) => handle.deleteTimer(held.id, 'P', 1)))
          const purged = await Promise.all([store, other].map((handle) => handle.purge(held.id, 1)))
          assert.equal(purged.filter((result) => result).length, 1)
        }
        assert.deepEqual(
          [await outboxOf(store, ns), await spawnsOf(store, ns), await timersOf(store, ns)],
          [[], [], []],
        )
      },
    },
    {
      title: 'readers beside a writer see each commit whole',
      async run(context) {
        const { store, ns } = context
        const [writer, reader] = await handlesOf(context)
        const held = execution(ns, 'e', { context: { n: 0 } })
        await writer.commit(held)
        const write = async () => {
          for (let n = 1; n <= 15; n++) {
            const next = { ...structuredClone(held), context: { n } }
            await writer.commit(next, { processedEventId: `${ns}ev${n}`, trace: { n } })
            held.version = next.version
          }
        }
        const read = async () => {
          for (let n = 0; n < 15; n++) {
            const seen = await loaded(reader, held.id)
            const last = Number(seen.context.n)
            assert.equal(seen.version, last + 1)
            if (last > 0) assert.equal(await reader.isProcessed(held.id, `${ns}ev${last}`), true)
            assert(Number((await reader.readTrace(held.id)).at(-1)?.n ?? 0) >= last, 'the trace lags behind the state')
          }
        }
        await Promise.all([write(), read()])
        assert.equal((await loaded(store, held.id)).version, 16)
      },
    },
  ],
}

/** Many writers, one and many executions, one and two handles. */
export const assertConcurrency = assertionOf(concurrencyContract)
