import assert from 'node:assert/strict'
import { CommitTooLarge, type Execution, type ExecutionStore, type JsonObject } from '@harel/store-base'
import { assertionOf, type Check, type CheckContext, type Contract } from '../contract.js'
import { emit, execution, loaded, outboxOf, rejection, spawnsOf, timersOf } from '../fixtures.js'

const KB = 1024

const keys = (count: number, length: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [String(n).padStart(length, 'k'), n]))

const contexts: Record<string, () => JsonObject> = {
  'of 390 KiB': () => ({ text: 'x'.repeat(390 * KB) }),
  'of 401 KiB': () => ({ text: 'x'.repeat(401 * KB) }),
  'of 420,000 bytes in 105,000 characters': () => ({ text: '😀'.repeat(105_000) }),
  'of 20,000 long keys': () => keys(20_000, 30),
  'of 1.2 MiB': () => ({ text: 'x'.repeat(1.2 * KB * KB) }),
  'of 17 MiB': () => ({ text: 'x'.repeat(17 * KB * KB) }),
}

/** The payload is this much larger than the context alone, at most. */
const ENVELOPE = 4 * KB

async function assertUntouched(store: ExecutionStore, held: Execution, ns: string): Promise<void> {
  assert.equal(held.version, 1)
  assert.deepEqual((await loaded(store, held.id)).context, {})
  assert.deepEqual(await outboxOf(store, ns), [])
  assert.deepEqual(await spawnsOf(store, ns), [])
  assert.deepEqual(await timersOf(store, ns), [])
  held.context = {}
  await store.commit(held)
}

const contextChecks = Object.entries(contexts).map(
  ([size, make]): Check => ({
    title: `a context ${size} is stored exactly, or refused as too large before it is sent`,
    reports: ['B26'],
    async run({ store, ns, capabilities: { maxExecutionBytes } }) {
      const context = make()
      const bytes = Buffer.byteLength(JSON.stringify(context))
      const held = execution(ns)
      await store.commit(held)
      const next = { ...structuredClone(held), context }
      if (bytes + ENVELOPE <= maxExecutionBytes) {
        await store.commit(next, { emits: [emit(ns, 'e', 'ev')] })
        assert.deepEqual((await loaded(store, held.id)).context, context)
      } else if (bytes > maxExecutionBytes) {
        const error = await rejection(() => store.commit(next, { emits: [emit(ns, 'e', 'ev')] }), CommitTooLarge)
        assert(error.size > error.limit, 'the error must say how much is allowed')
        await assertUntouched(store, next, ns)
      }
    },
  }),
)

/** Commits of many writes, the execution's own included. */
const counts: readonly number[] = [99, 100, 101, 500]

/** Stored whole, or refused whole. */
async function allOrNothing({ store, ns }: CheckContext, commit: (held: Execution) => Promise<unknown>) {
  const held = execution(ns)
  await store.commit(held)
  try {
    await commit(held)
    return true
  } catch (error) {
    assert(error instanceof CommitTooLarge, `a commit must be stored or refused as too large; ${String(error)}`)
    await assertUntouched(store, held, ns)
    return false
  }
}

export const sizeContract: Contract = {
  name: 'sizes',
  checks: [
    ...contextChecks,
    {
      title: 'a commit of as many writes as promised is stored, one of more is refused before it is sent',
      reports: ['B71'],
      weaknesses: [31],
      async run(context) {
        const { store, ns, capabilities } = context
        for (const count of counts) {
          const part = { ...context, ns: `${ns}${count}/` }
          const emits = Array.from({ length: count - 1 }, (_, n) => emit(part.ns, 'e', `n${n}`))
          const stored = await allOrNothing(part, (held) => store.commit(held, { emits }))
          assert.equal(stored, count <= capabilities.maxCommitWrites, `${count} writes`)
          if (!stored) continue
          assert.deepEqual(
            (await outboxOf(store, part.ns)).map(({ event }) => event),
            emits.map(({ event }) => event),
          )
        }
      },
    },
    {
      title: 'a commit of five megabytes over many events is stored whole, or refused whole',
      reports: ['B71'],
      async run(context) {
        const { store, ns } = context
        const emits = Array.from({ length: 20 }, (_, n) => emit(ns, 'e', `n${n}`, { text: 'x'.repeat(256 * KB) }))
        const stored = await allOrNothing(context, (held) => store.commit(held, { emits }))
        assert.equal((await outboxOf(store, ns)).length, stored ? 20 : 0)
      },
    },
  ],
}

/** Large executions and large commits: stored, or refused before they are sent. */
export const assertSizes = assertionOf(sizeContract)
