import assert from 'node:assert/strict'
import type { TraceStep } from '@harel/store-base'
import { NotSerializable } from '@harel/store-base'
import { assertionOf, type Contract } from '../contract.js'
import { execution, rejection, stored } from '../fixtures.js'

const step = (n: number): TraceStep => ({ n })

const numbered = (from: number, to: number): TraceStep[] =>
  Array.from({ length: to - from }, (_, n) => ({ n: from + n, index: from + n }))

export const traceContract: Contract = {
  name: 'trace',
  checks: [
    {
      title: 'steps are read oldest first, each with its index from 0',
      async run({ store, ns }) {
        const held = execution(ns)
        assert.deepEqual(await store.readTrace(held.id), [])
        await store.commit(held, { trace: step(0) })
        await store.commit(held)
        await store.commit(held, { trace: step(1) })
        assert.deepEqual(await store.readTrace(held.id), numbered(0, 2))
      },
    },
    {
      title: 'a step is read as it was committed',
      async run({ store, ns }) {
        const trace = {
          event_kind: 'Paid\u0000',
          event_data: { list: [], none: null, deep: [[{ x: 0.1 }]] },
          from_path: null,
          actions: ['a', 'b'],
          timestamp: 1700000000.25,
        }
        const { id } = await stored(store, ns, 'e', {}, { trace })
        assert.deepEqual(await store.readTrace(id), [{ ...trace, index: 0 }])
      },
    },
    {
      title: 'only the newest steps are kept, and their indexes go on',
      async run({ store, ns, traceMax }) {
        const held = execution(ns)
        const total = traceMax + 3
        for (let n = 0; n < total; n++) {
          await store.commit(held, { trace: step(n) })
          assert.deepEqual(await store.readTrace(held.id), numbered(Math.max(0, n + 1 - traceMax), n + 1))
        }
      },
    },
    {
      title: 'appended steps fall under the same limit as committed ones and count on with them',
      async run({ store, ns, traceMax }) {
        const held = execution(ns)
        for (let n = 0; n < traceMax + 3; n++) {
          if (n % 2 === 0) await store.commit(held, { trace: step(n) })
          else await store.appendTrace(held.id, step(n))
        }
        assert.deepEqual(await store.readTrace(held.id), numbered(3, traceMax + 3))
      },
    },
    {
      title: 'a step can be appended although the execution is not stored, and creates none',
      weaknesses: [9],
      async run({ store, ns }) {
        await store.appendTrace(`${ns}e`, step(0))
        assert.deepEqual(await store.readTrace(`${ns}e`), numbered(0, 1))
        assert.equal(await store.load(`${ns}e`), undefined)
        assert.deepEqual(await store.idsWithPrefix(ns), [])
        const held = execution(ns)
        await store.commit(held, { trace: step(1) })
        assert.deepEqual(await store.readTrace(held.id), numbered(0, 2))
      },
    },
    {
      title: 'an index inside a step is replaced by the one that is counted',
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', {}, { trace: { n: 0, index: 17 } })
        await store.appendTrace(id, { index: 'x', n: 1 })
        assert.deepEqual(await store.readTrace(id), numbered(0, 2))
      },
    },
    {
      title: 'each execution has a trace of its own, whatever the ids look like',
      async run({ store, ns }) {
        const names = ['e', 'e:0', 'E', 'seq:e', 'e%', 'e*']
        for (const [n, name] of names.entries()) await store.appendTrace(ns + name, { n })
        for (const [n, name] of names.entries()) {
          assert.deepEqual(await store.readTrace(ns + name), [{ n, index: 0 }], name)
        }
      },
    },
    {
      title: 'appending a step does not touch the execution',
      async run({ store, ns }) {
        const held = await stored(store, ns)
        await store.appendTrace(held.id, step(0))
        assert.equal((await store.load(held.id))?.version, 1)
        await store.commit(held)
      },
    },
    {
      title: 'a step that cannot be stored is refused and takes no index',
      async run({ store, ns }) {
        await rejection(() => store.appendTrace(`${ns}e`, { n: Number.NaN }), NotSerializable)
        await store.appendTrace(`${ns}e`, step(0))
        assert.deepEqual(await store.readTrace(`${ns}e`), numbered(0, 1))
      },
    },
    {
      title: 'after a purge the index starts at 0 again',
      weaknesses: [30],
      async run({ store, ns, traceMax }) {
        const held = execution(ns)
        for (let n = 0; n < traceMax + 1; n++) await store.commit(held, { trace: step(9) })
        assert.equal(await store.purge(held.id, held.version), true)
        await stored(store, ns, 'e', {}, { trace: step(0) })
        assert.deepEqual(await store.readTrace(held.id), numbered(0, 1))
      },
    },
    {
      title: 'steps of many appenders at once are all kept, each with an index of its own',
      async run({ store, ns, traceMax }) {
        const appended = Array.from({ length: traceMax }, (_, n) => n)
        await Promise.all(appended.map((n) => store.appendTrace(`${ns}e`, step(n))))
        const steps = await store.readTrace(`${ns}e`)
        assert.deepEqual(
          steps.map(({ index }) => index),
          appended,
        )
        assert.deepEqual(new Set(steps.map(({ n }) => n)), new Set(appended))
      },
    },
    {
      title: 'a trace of more than a megabyte is read whole',
      weaknesses: [30],
      async run({ store, ns, traceMax, capabilities }) {
        const text = 'x'.repeat(Math.min(350_000, capabilities.maxExecutionBytes / 2))
        const count = Math.min(traceMax, 4)
        for (let n = 0; n < count; n++) await store.appendTrace(`${ns}e`, { n, text })
        assert.deepEqual(
          (await store.readTrace(`${ns}e`)).map(({ n, text }) => [n, String(text).length]),
          Array.from({ length: count }, (_, n) => [n, text.length]),
        )
      },
    },
    {
      title: 'two hundred steps are kept when nothing else is said',
      needs: ['open'],
      async run({ open, ns }) {
        const store = await open()
        for (let n = 0; n < 202; n++) await store.appendTrace(`${ns}e`, step(n))
        assert.deepEqual(await store.readTrace(`${ns}e`), numbered(2, 202))
      },
    },
    {
      title: 'a limit of 0 keeps every step',
      needs: ['open'],
      async run({ open, ns }) {
        const store = await open({ traceMax: 0 })
        for (let n = 0; n < 205; n++) await store.appendTrace(`${ns}e`, step(n))
        assert.deepEqual(await store.readTrace(`${ns}e`), numbered(0, 205))
      },
    },
    {
      title: 'a trace that is longer than a new, lower limit is cut by the next step',
      weaknesses: [30],
      needs: ['shared'],
      async run({ store, open, ns, traceMax }) {
        for (let n = 0; n < traceMax; n++) await store.appendTrace(`${ns}e`, step(n))
        const lower = await open({ traceMax: 2 })
        await lower.appendTrace(`${ns}e`, step(traceMax))
        assert.deepEqual(await store.readTrace(`${ns}e`), numbered(traceMax - 1, traceMax + 1))
      },
    },
  ],
}

/** The ring of the newest steps. */
export const assertTrace = assertionOf(traceContract)
