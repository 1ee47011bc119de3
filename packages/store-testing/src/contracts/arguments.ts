import assert from 'node:assert/strict'
import { type CommitChanges, InvalidArgument, type ListQuery, STATUSES } from '@harel/store-base'
import { assertionOf, type Check, type CheckContext, type Contract } from '../contract.js'
import { everything, execution, rejection, stateOf, stored } from '../fixtures.js'
import { unreadableCalls } from '../unreadable-calls.js'
import { type Case, wrongCalls } from '../wrong-calls.js'

/** A short text for a value that was given. */
const shown = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 20))
  return typeof value === 'object' && value !== null ? (JSON.stringify(value) ?? 'an object') : String(value)
}

async function assertRefused(context: CheckContext, cases: readonly Case[]): Promise<void> {
  const { store, ns } = context
  await stored(store, ns, 'e', {}, everything(ns, 'e'))
  const ids = [`${ns}e`, `${ns}x`]
  const before = await stateOf(context, ids, [`${ns}e-ev`, `${ns}x-ev`])
  for (const { argument, values = [undefined], cause, call } of cases) {
    for (const value of values) {
      const what = `${argument} = ${shown(value)} in ${call.toString().replace(/\s+/g, ' ').slice(0, 120)}`
      const error = await rejection(() => call(store, ns, value), InvalidArgument, what)
      assert.equal(error.argument, argument, what)
      assert(error.message.includes(argument), `the message must name ${argument}: ${error.message}`)
      assert(error.message.length < 500, `the message has ${error.message.length} characters`)
      assert.equal(error.retryable, false)
      if (cause !== undefined) assert.equal(error.cause, cause, what)
    }
  }
  assert.deepEqual(await stateOf(context, ids, [`${ns}e-ev`, `${ns}x-ev`]), before)
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
}

export const argumentContract: Contract = {
  name: 'arguments',
  checks: [
    ...[...wrongCalls, ...unreadableCalls].map(
      ({ cases, ...guarantee }): Check => ({ ...guarantee, run: (context) => assertRefused(context, cases) }),
    ),
    {
      title: 'arguments at the borders of what is allowed are taken',
      reports: ['B91'],
      async run({ store, ns }) {
        await stored(store, ns, 'e', { priority: 4, processedEvents: Number.MAX_SAFE_INTEGER })
        for (const limit of [1, 1000]) {
          await store.listExecutions({ limit })
          await store.pendingOutbox({ limit, after: 0 })
          await store.pendingSpawns({ limit, after: Number.MAX_SAFE_INTEGER })
          await store.dueTimers(-8.64e12, { limit })
        }
        await store.pendingOutbox({})
        await store.listExecutions({ limit: undefined, cursor: undefined } as unknown as ListQuery)
        await store.listExecutions({ status: [...STATUSES, 'DONE'] })
        assert.equal(await store.purge(`${ns}e`, 0), false)
        assert.equal(await store.purge(`${ns}e`, Number.MAX_SAFE_INTEGER), false)
        const { emits: _emits, ...rest } = everything(ns, 'e')
        assert.deepEqual(
          await store.commit(execution(ns, 'f'), { ...rest, emits: undefined } as unknown as CommitChanges),
          [],
        )
      },
    },
    {
      title: 'every status can be stored and found',
      async run({ store, ns }) {
        for (const status of STATUSES) await stored(store, ns, status, { status })
        for (const status of STATUSES) {
          const { items } = await store.listExecutions({ definitionId: `${ns}d`, status })
          assert.deepEqual(
            items.map(({ id }) => id),
            [ns + status],
          )
        }
      },
    },
  ],
}

/** That every method refuses what it cannot take, names it, and then has changed nothing. */
export const assertArguments = assertionOf(argumentContract)
