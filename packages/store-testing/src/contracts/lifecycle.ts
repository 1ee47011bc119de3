import assert from 'node:assert/strict'
import { type ExecutionStore, StoreClosed, StoreError } from '@harel/store-base'
import { assertionOf, type Contract } from '../contract.js'
import { emit, everything, execution, loaded, outboxOf, rejection, spawnsOf, stored, timersOf } from '../fixtures.js'

/** A valid call of every method. */
const calls = (store: ExecutionStore, ns: string): Record<string, () => Promise<unknown>> => ({
  load: () => store.load(`${ns}e`),
  loadForEvent: () => store.loadForEvent(`${ns}e`, `${ns}ev`),
  save: () => store.save(execution(ns, 'late')),
  commit: () => store.commit(execution(ns, 'late'), everything(ns, 'late')),
  isProcessed: () => store.isProcessed(`${ns}e`, `${ns}ev`),
  pendingOutbox: () => store.pendingOutbox(),
  ackOutbox: () => store.ackOutbox(1),
  pendingSpawns: () => store.pendingSpawns({ limit: 1 }),
  ackSpawn: () => store.ackSpawn([]),
  dueTimers: () => store.dueTimers(0),
  deleteTimer: () => store.deleteTimer(`${ns}e`, 'P', 1),
  readTrace: () => store.readTrace(`${ns}e`),
  appendTrace: () => store.appendTrace(`${ns}e`, {}),
  listExecutions: () => store.listExecutions({}),
  idsWithPrefix: () => store.idsWithPrefix(ns),
  publishDefinition: () => store.publishDefinition({ id: `${ns}D`, version: '1', definition: {} }),
  loadDefinition: () => store.loadDefinition(`${ns}D`, '1'),
  purge: () => store.purge(`${ns}e`, 1),
})

// What closes the store that it was given comes last, so that the contract can be run by hand on one store.
export const lifecycleContract: Contract = {
  name: 'lifecycle',
  checks: [
    {
      title: 'a store shows no password, no URL and no record when it is printed',
      reports: ['B102'],
      async run({ store, ns }) {
        await stored(store, ns, 'e', { context: { secret: 'CANARY-42' } })
        const { inspect } = await import('node:util')
        const printed = [inspect(store, { depth: 2 }), String(store), JSON.stringify(store) ?? '']
        for (const text of printed) assert(!/CANARY-42|:\/\/[^/\s]*:[^/\s]*@/.test(text), text.slice(0, 200))
      },
    },
    {
      title: 'no error shows anything of a record, however it and its causes are printed',
      reports: ['B102'],
      async run({ store, ns }) {
        const secret = { text: 'CANARY-42' }
        const bad = { ...secret, bad: Number.NaN }
        const held = await stored(store, ns, 'e', { context: secret })
        const changes = {
          emits: [emit(ns, null, 'ev', secret)],
          spawns: [{ childId: `${ns}c`, rootPath: '', context: secret }],
          trace: secret,
        }
        const refused = [
          () => store.commit({ ...held, version: 7 }, changes),
          () => store.commit({ ...held, context: bad }, changes),
          () => store.commit({ ...held, context: secret }, { ...changes, trace: bad }),
          () => store.commit({ ...held, context: secret }, { ...changes, emits: [emit(ns, null, 'ev', bad)] }),
          () => store.appendTrace(held.id, bad),
          () => store.publishDefinition({ id: `${ns}D`, version: '1', definition: bad }),
        ]
        const { inspect } = await import('node:util')
        for (const refuse of refused) {
          let error: unknown = await rejection(refuse, StoreError)
          const printed = [inspect(error, { depth: 9, showHidden: true })]
          for (; error instanceof Error; error = error.cause) {
            printed.push(String(error), error.stack ?? '', JSON.stringify(error), JSON.stringify(error.cause) ?? '')
          }
          assert(!printed.join().includes('CANARY-42'), 'an error shows a record')
        }
      },
    },
    {
      title: 'leaving the scope of `await using` closes the store',
      needs: ['open'],
      async run({ open, ns }) {
        const store = await open()
        {
          await using scoped = store
          await scoped.load(`${ns}e`)
        }
        await rejection(() => store.load(`${ns}e`), StoreClosed)
      },
    },
    {
      title: 'closing one handle leaves the others at work',
      reports: ['B92'],
      needs: ['shared'],
      async run({ open, ns }) {
        const [store, other] = [await open(), await open()]
        const held = await stored(store, ns)
        await store.close()
        await other.commit(held)
        assert.equal((await loaded(other, held.id)).version, 2)
      },
    },
    {
      title: 'what was committed is there when the store is opened again, with all that belongs to it',
      reports: ['B02'],
      needs: ['open', 'durable'],
      async run({ open, ns }) {
        const store = await open()
        const text = '\n\u0000\u0000x'
        const held = execution(ns, 'e', { context: { n: 1, text }, error: text })
        const changes = { ...everything(ns, 'e'), emits: [emit(ns, 'e', 'e-tick', { text })] }
        const seqs = await store.commit(held, changes)
        await store.publishDefinition({ id: `${ns}D`, version: '1', definition: { n: 1 } })
        await store.close()
        const again = await open()
        assert.deepEqual(await again.loadForEvent(held.id, `${ns}e-ev`), { execution: held, processed: true })
        assert.deepEqual(
          (await outboxOf(again, ns)).map(({ seq, event }) => [seq, event.data]),
          [[seqs[0], { text }]],
        )
        assert.equal((await spawnsOf(again, ns)).length, 1)
        assert.equal((await timersOf(again, ns)).length, 1)
        assert.deepEqual(await again.readTrace(held.id), [{ event: 'Tick', index: 0 }])
        assert.equal((await again.loadDefinition(`${ns}D`, '1'))?.version, '1')
        const later = await again.commit(held, everything(ns, 'e'))
        assert(!seqs.includes(later[0] ?? 0), 'a seq is used twice')
        assert.equal((await again.readTrace(held.id)).at(-1)?.index, 1)
      },
    },
    {
      title: 'many handles opened at once on a database all work',
      reports: ['B42', 'B44'],
      weaknesses: [44],
      needs: ['shared'],
      async run({ open, ns }) {
        const handles = await Promise.all(Array.from({ length: 4 }, () => open()))
        await Promise.all(handles.map((handle, n) => handle.save(execution(ns, `e${n}`))))
        assert.equal((await handles[0]?.idsWithPrefix(ns))?.length, 4)
      },
    },
    {
      title: 'a call that was under way when the store was closed is carried out or refused as closed',
      reports: ['B92'],
      async run({ store, ns }) {
        const held = execution(ns)
        const commit = store.commit(held, everything(ns, 'e'))
        const close = store.close()
        const [outcome] = await Promise.allSettled([commit, close])
        assert.equal(held.version, outcome.status === 'fulfilled' ? 1 : 0)
        if (outcome.status === 'rejected') await rejection(() => Promise.reject(outcome.reason), StoreClosed)
        await close
      },
    },
    {
      title: 'closing again is no error, at once or later, by close or by dispose',
      reports: ['B92'],
      async run({ store }) {
        await Promise.all([store.close(), store.close()])
        await store.close()
        await store[Symbol.asyncDispose]()
      },
    },
    {
      title: 'after close every method rejects with StoreClosed',
      async run({ store, ns }) {
        await store.close()
        for (const [name, call] of Object.entries(calls(store, ns))) {
          const error = await rejection(call, StoreClosed, name)
          assert.deepEqual([error.code, error.retryable], ['STORE_CLOSED', false])
        }
      },
    },
    {
      title: 'a commit refused by a closed store leaves the version of the caller',
      async run({ store, ns }) {
        await store.close()
        const held = execution(ns)
        await rejection(() => store.commit(held), StoreClosed)
        assert.equal(held.version, 0)
      },
    },
    {
      title: 'the capabilities of a closed store can still be read',
      async run({ store, capabilities }) {
        await store.close()
        assert.equal(store.capabilities.durable, capabilities.durable)
      },
    },
  ],
}

/** Opening and closing. */
export const assertLifecycle = assertionOf(lifecycleContract)
