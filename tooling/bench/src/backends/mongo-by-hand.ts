/** The driver alone: an allocation of a number, and an update that looks at the version. */
import { type Db, Double, Int32, Long } from 'mongodb'
import type { Actions } from '../contender.ts'
import { nextEventId, type Subject, wireEvent } from '../subjects.ts'

const DEDUPE = 10_000

/** On the store's collections and with its indexes, of documents that the store has made. */
export function byHand(db: Db, kind: 'pipeline' | '$push'): Partial<Actions> {
  const options = { writeConcern: { w: 'majority', journal: true } } as const
  const executions = db.collection<{ _id: string; data: string }>('harel_executions', options)
  const counters = db.collection<{ _id: string; n: number }>('harel_counters', options)
  const commit = async ({ execution, wire }: Subject): Promise<void> => {
    const id = nextEventId()
    const version = new Int32(execution.version + 1)
    wire.version = execution.version + 1
    const add = { $inc: { n: Long.fromNumber(1) } }
    const counter = await counters.findOneAndUpdate({ _id: 'outbox' }, add, { upsert: true, returnDocument: 'after' })
    const item = { seq: Long.fromNumber(counter?.n ?? 0), target_id: wire.id, event: JSON.stringify(wireEvent(id)) }
    const { definition_id, status, outcome, active_path, parent_id, finished_at } = wire
    const summary = {
      ...{ version, definition_id, status, outcome, active_path, parent_id, root: parent_id === null },
      finished_at: finished_at === null ? null : new Double(Number(finished_at)),
    }
    const set = { data: JSON.stringify(wire), version, definition_id, summary }
    const update =
      kind === '$push'
        ? { $set: set, $push: { outbox: { $each: [item] }, processed: { $each: [id], $slice: -DEDUPE } } }
        : [
            {
              $set: {
                ...Object.fromEntries(Object.entries(set).map(([name, value]) => [name, { $literal: value }])),
                outbox: { $concatArrays: ['$outbox', { $literal: [item] }] },
                processed: { $slice: [{ $concatArrays: ['$processed', { $literal: [id] }] }, -DEDUPE] },
              },
            },
          ]
    const { matchedCount } = await executions.updateOne(
      { _id: String(wire.id), version: execution.version } as object,
      update as object,
    )
    if (matchedCount !== 1) throw new Error(`version ${execution.version} of ${wire.id} is not stored`)
    execution.version += 1
  }
  const load = async (id: string) => {
    const document = await executions.findOne({ _id: id }, { projection: { data: 1 }, readPreference: 'primary' })
    return JSON.parse(document?.data ?? '')
  }
  return { commit, load }
}
