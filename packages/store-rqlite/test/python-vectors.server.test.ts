import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newExecution } from '@harel/store-rqlite'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { newPrefix, open, request } from './helpers.js'

const vector = (file: string): string => readFileSync(join(import.meta.dirname, 'vectors', file), 'utf8')

/** What Python reads; the rest is what the program that wrote it noted down. */
function readByPython(name: string): object {
  const { notes, definition_id, fired, ...stored } = JSON.parse(vector(`${name}.canonical.json`))
  return stored
}

const TABLES = {
  executions: 'id, definition_id, version, data',
  outbox: 'seq, target_id, event',
  processed_events: 'execution_id, event_id',
  timers: 'execution_id, path, fire_at',
  spawns: 'seq, parent_id, child_id, root_path, context',
  trace: 'execution_id, idx, entry',
}

withServer('rqlite', ({ url }) => {
  /** Sends what Python has sent, its replies apart. */
  async function replay(name: string, prefix: string): Promise<void> {
    for (const line of vector(`${name}.requests.jsonl`).trim().split('\n')) {
      const { path, body } = JSON.parse(line.replaceAll('harel_', `${prefix}_`)) as { path: string; body: string }
      const headers = { 'content-type': 'application/json' }
      const reply = await fetch(`${url}${path}`, { method: 'POST', headers, body })
      expect(await reply.text()).not.toContain('"error"')
    }
  }

  const rowsOf = async (prefix: string): Promise<Record<string, unknown[]>> => {
    const rows: Record<string, unknown[]> = {}
    for (const [table, columns] of Object.entries(TABLES)) {
      rows[table] = await request(url, `SELECT ${columns} FROM ${prefix}_${table} ORDER BY 1, 2`)
    }
    return rows
  }

  /** Rows with their JSON read, and without the token that is random. */
  async function read(sql: string): Promise<unknown[][]> {
    const meaningOf = (value: unknown) => {
      if (typeof value !== 'string' || !value.startsWith('{')) return value
      const { commit_token, ...rest } = JSON.parse(value)
      return rest
    }
    return (await request(url, sql)).map((row) => row.map(meaningOf))
  }

  describe.each([
    { name: 'scenario', ns: 'chk-' },
    { name: 'runner', ns: 'run-' },
  ])('the requests of Python ($name)', ({ name, ns }) => {
    test.each([true, false])(
      'write what is read exactly as Python reads it (createSchema: %s)',
      async (createSchema) => {
        const prefix = newPrefix()
        await replay(name, prefix)
        const before = await rowsOf(prefix)
        const warnings: string[] = []
        const store = await open(url, { prefix, createSchema, onWarning: (text) => warnings.push(text) })
        expect(await canonical(store, ns)).toEqual(readByPython(name))
        expect(warnings).toHaveLength(createSchema ? 0 : 1)
        expect(await rowsOf(prefix)).toEqual(before)
      },
    )

    test('write the same into tables that are ours', async () => {
      const prefix = newPrefix()
      const store = await open(url, { prefix, onWarning: expect.unreachable })
      await replay(name, prefix)
      expect(await canonical(store, ns)).toEqual(readByPython(name))
    })

    test('write rows like those that a store makes of what it has read', async () => {
      const [theirs, ours] = [newPrefix(), newPrefix()]
      await replay(name, theirs)
      const from = await open(url, { prefix: theirs, createSchema: false, onWarning: () => {} })
      const to = await open(url, { prefix: ours })
      const timers = await from.dueTimers(Number.MAX_VALUE)
      for (const { id } of (await from.listExecutions({ limit: 1000 })).items) {
        const held = (await from.load(id)) ?? expect.unreachable()
        const { version } = held
        for (held.version = 0; held.version < version; ) {
          const own = timers.filter(({ executionId }) => executionId === id)
          await to.commit(held, { timers: own.map((timer) => ({ action: 'schedule', ...timer })) })
        }
        for (const { index, ...step } of await from.readTrace(id)) await to.appendTrace(id, step)
      }
      const sql = (prefix: string) => [
        `SELECT id, definition_id, version, data FROM ${prefix}_executions WHERE id <> 'carrier' ORDER BY id`,
        `SELECT execution_id, entry FROM ${prefix}_trace JOIN ${prefix}_executions ON id = execution_id ORDER BY 1, idx`,
        `SELECT t.* FROM ${prefix}_timers t JOIN ${prefix}_executions ON id = execution_id ORDER BY 1, 2`,
        `SELECT target_id, event FROM ${prefix}_outbox ORDER BY seq`,
        `SELECT child_id, root_path, context FROM ${prefix}_spawns ORDER BY seq`,
      ]
      const [emits, spawns] = [await from.pendingOutbox(), await from.pendingSpawns()]
      await to.commit(newExecution({ id: 'carrier', definitionId: 'd' }), { emits, spawns })
      for (const [index, statement] of sql(ours).entries()) {
        const rows = await read(sql(theirs)[index] ?? '')
        expect(await read(statement)).toEqual(rows)
      }
    })

    test('make tables whose columns all are in ours, with the same types', async () => {
      const [theirs, ours] = [newPrefix(), newPrefix()]
      await replay(name, theirs)
      await open(url, { prefix: ours })
      for (const table of Object.keys(TABLES)) {
        const columns = (prefix: string) =>
          request(url, `SELECT name, type, "notnull", pk, dflt_value FROM pragma_table_info('${prefix}_${table}')`)
        expect(await columns(ours)).toEqual(expect.arrayContaining(await columns(theirs)))
      }
    })
  })
})
