import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { site as dynamodb } from '../src/backends/dynamodb.ts'
import { fillDynamo } from '../src/backends/dynamodb-fill.ts'
import { site as libsql } from '../src/backends/libsql.ts'
import { site as mongo } from '../src/backends/mongo.ts'
import { fillMongo } from '../src/backends/mongo-fill.ts'
import { site as postgres } from '../src/backends/postgres.ts'
import { fillPostgres } from '../src/backends/postgres-fill.ts'
import { site as redis } from '../src/backends/redis.ts'
import { fillRedis } from '../src/backends/redis-fill.ts'
import { site as rqlite } from '../src/backends/rqlite.ts'
import { fillRqlite } from '../src/backends/rqlite-fill.ts'
import { site as sqlite } from '../src/backends/sqlite.ts'
import { fillFile } from '../src/backends/sqlite-database.ts'
import { DUE, idOf } from '../src/fill.ts'
import { openStore } from '../src/open-store.ts'
import { commitOf, nextEventId } from '../src/subjects.ts'

const ROWS = 150

test.each([
  { site: sqlite, fill: fillFile },
  { site: libsql, fill: fillFile },
  { site: rqlite, fill: fillRqlite },
  { site: postgres, fill: fillPostgres },
  { site: redis, fill: fillRedis },
  { site: mongo, fill: fillMongo },
  { site: dynamodb, fill: fillDynamo },
])(
  'what is filled into $site.backend past the store is what the store would have written',
  async ({ site, fill }) => {
    const folder = mkdtempSync(join(tmpdir(), 'fill-'))
    try {
      await using place = await site.database(folder)
      const subjects = await fill(place.url, ROWS)
      await using store = await openStore(site.backend, place.url)
      const ids = Array.from({ length: ROWS }, (_, n) => idOf(n))
      expect(subjects.map(({ execution }) => execution.id)).toEqual(ids)
      expect((await store.pendingOutbox()).map(({ targetId }) => targetId)).toEqual(ids)
      const due = ids.toReversed().map((executionId, n) => ({ executionId, path: 'due', fireAt: DUE - ROWS + 1 + n }))
      expect(await store.dueTimers(DUE)).toEqual(due)
      const { items } = await store.listExecutions({ status: 'RUNNING', rootsOnly: true, limit: 1000 })
      const running = subjects.filter(({ execution }) => execution.status === 'RUNNING' && execution.parentId === null)
      expect(items.map(({ id }) => id).sort()).toEqual(running.map(({ execution }) => execution.id).sort())
      for (const subject of subjects.slice(0, 3)) {
        const { execution } = subject
        expect(await store.load(execution.id)).toEqual(execution)
        const [seq] = await store.commit(...commitOf(subject, nextEventId()))
        expect(seq).toBeGreaterThan(ROWS)
        expect((await store.load(execution.id))?.version).toBe(2)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
  120_000,
)
