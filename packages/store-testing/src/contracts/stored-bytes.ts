import assert from 'node:assert/strict'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { event, execution, stored } from '../fixtures.js'

/** The fields of a stored execution, as every implementation of harel reads them. */
const FIELDS = [
  'version',
  'id',
  'definition_id',
  'definition_fqn',
  'root_path',
  'status',
  'outcome',
  'error',
  'active_path',
  'history',
  'context',
  'processed_events',
  'priority',
  'parent_id',
  'child_id',
  'deferred',
  'children',
  'invoke_seq',
  'created_at',
  'updated_at',
  'finished_at',
  'expires_at',
]

async function payloadOf({ probes }: CheckContext, id: string): Promise<string> {
  const text = await probes.executionText?.(id)
  assert(text !== undefined, 'no payload is stored')
  return text
}

const parsed = async (context: CheckContext, id: string): Promise<Record<string, unknown>> =>
  JSON.parse(await payloadOf(context, id)) as Record<string, unknown>

export const storedBytesContract: Contract = {
  name: 'stored bytes',
  checks: [
    {
      title: 'a payload starts with the version, then the token of its commit, then the id',
      needs: ['executionText'],
      async run(context) {
        const held = await stored(context.store, context.ns)
        await context.store.commit(held)
        assert.match(await payloadOf(context, held.id), /^\{"version":2,"commit_token":"[\w-]+","id":"/)
      },
    },
    {
      title: 'every commit has a token of its own',
      needs: ['executionText'],
      async run(context) {
        const held = execution(context.ns)
        const tokens = new Set<unknown>()
        for (let n = 0; n < 3; n++) {
          await context.store.commit(held)
          tokens.add((await parsed(context, held.id)).commit_token)
        }
        assert.equal(tokens.size, 3)
      },
    },
    {
      title: 'a payload has all 22 fields, in snake_case, whatever their values',
      reports: ['B15'],
      needs: ['executionText'],
      async run(context) {
        const { id } = await stored(context.store, context.ns)
        const { commit_token, ...fields } = await parsed(context, id)
        assert.deepEqual(Object.keys(fields).sort(), FIELDS.toSorted())
      },
    },
    {
      title: 'records within a payload are in snake_case, and the data of users is as they wrote it',
      needs: ['executionText'],
      async run(context) {
        const data = { camelCase: 1, snake_case: { innerKey: [] } }
        const child = { rootPath: 'R', finished: true, outcome: null, result: data, submachine: false, key: 'k' }
        const { id } = await stored(context.store, context.ns, 'e', {
          context: data,
          history: { someKey: 'x' },
          deferred: [event(context.ns, 'ev', data)],
          children: { someChild: child },
          invokeSeq: { somePath: 1 },
        })
        const fields = await parsed(context, id)
        assert.deepEqual([fields.context, fields.history], [data, { someKey: 'x' }])
        assert.deepEqual(fields.deferred, [
          { id: `${context.ns}ev`, kind: 'ev', created_time: null, received_time: null, data },
        ])
        assert.deepEqual(fields.children, {
          someChild: { root_path: 'R', finished: true, outcome: null, result: data, submachine: false, key: 'k' },
        })
        assert.deepEqual(fields.invoke_seq, { somePath: 1 })
      },
    },
    {
      title: 'a payload does not grow with the history of its execution',
      reports: ['B97'],
      weaknesses: [29],
      needs: ['executionText'],
      async run(context) {
        const held = execution(context.ns)
        const sizes: number[] = []
        for (let n = 0; n < 30; n++) {
          await context.store.commit(held, { processedEventId: `${context.ns}ev${n}`, trace: { n } })
          sizes.push((await payloadOf(context, held.id)).length)
        }
        assert((sizes[29] ?? 0) <= (sizes[0] ?? 0) + 1, 'the 30th payload is larger than the first')
      },
    },
    {
      title: 'neither a purged execution nor a refused commit has a payload',
      needs: ['executionText'],
      async run({ store, ns, probes }) {
        const { id } = await stored(store, ns)
        assert.equal(await store.purge(id, 1), true)
        assert.equal(await probes.executionText?.(id), undefined)
        await assert.rejects(store.commit(execution(ns, 'e', { version: 4 })))
        assert.equal(await probes.executionText?.(id), undefined)
      },
    },
  ],
}

/** What is stored, read past the store. */
export const assertStoredBytes = assertionOf(storedBytesContract)
