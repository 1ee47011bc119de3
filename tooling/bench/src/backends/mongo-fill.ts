import { MongoStore } from '@harel/store-mongo'
import { Double, Int32, Long, MongoClient } from 'mongodb'
import { ANY_ID, DUE, idOf, sample, templates } from '../fill.ts'
import { BYTES, type Subject, subject } from '../subjects.ts'

const PART = 1000

/** Fills a database with so many executions, each with a pending event and a due timer. */
export async function fillMongo(url: string, rows: number): Promise<readonly Subject[]> {
  const client = new MongoClient(url)
  const db = client.db()
  const store = new MongoStore(db)
  // The indexes are made when they are needed.
  await store.load('nothing')
  await store.close()
  const { execution, event } = templates()
  const { wire } = subject({ id: ANY_ID }, BYTES, 1)
  const { definition_id, status, outcome, active_path, parent_id, finished_at } = wire
  const version = new Int32(1)
  const summary = { version, definition_id, status, outcome, active_path, parent_id, finished_at, root: true }
  const documentOf = (n: number) => {
    const [_id, due] = [idOf(n), new Double(DUE - n)]
    const outbox = [{ seq: Long.fromNumber(n + 1), target_id: _id, event }]
    const data = execution.replace(ANY_ID, _id)
    return { _id, definition_id, version, data, summary, outbox, timers: { due }, next_fire_at: due }
  }
  try {
    const executions = db.collection<ReturnType<typeof documentOf>>('harel_executions')
    for (let from = 0; from < rows; from += PART) {
      const part = Array.from({ length: Math.min(PART, rows - from) }, (_, index) => documentOf(from + index))
      await executions.insertMany(part, { ordered: false })
    }
    const counters = db.collection<{ _id: string; n: Long }>('harel_counters')
    await counters.updateOne({ _id: 'outbox' }, { $set: { n: Long.fromNumber(rows) } }, { upsert: true })
  } finally {
    await client.close()
  }
  return sample(rows)
}
