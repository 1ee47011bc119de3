import { Long } from 'mongodb'
import { toNumber } from './bson.js'
import type { OutboxItem } from './collections.js'
import type { Connection } from './connection.js'
import { retriedOnce } from './errors.js'

/**
 * Not one step, but in an order in which a crash loses nothing: the events that it sent to others are copied to where they
 * outlive it, then the document goes, and last what is kept elsewhere. Called again, it goes on.
 *
 * @param acknowledge removes events wherever they are
 */
export async function purge(
  connection: Connection,
  id: string,
  expectedVersion: number,
  acknowledge: (seqs: number[]) => Promise<void>,
): Promise<boolean> {
  const document = await connection.read(({ executions }, options) =>
    executions.findOne({ _id: id }, { projection: { version: 1, outbox: 1 }, ...options }),
  )
  if (document !== null) {
    if (Number(document.version) !== expectedVersion) return false
    const sent = (document.outbox ?? []).filter(({ target_id }) => target_id !== id)
    for (const item of sent) await keep(connection, item)
    const version = toNumber(expectedVersion)
    const deleted = await connection.write(({ executions }, options) =>
      executions.findOneAndDelete({ _id: id, version }, { projection: { outbox: 1 }, ...options }),
    )
    if (deleted === null) return false
    const left = new Set((deleted.outbox ?? []).map(({ seq }) => Number(seq)))
    const acknowledged = sent.map(({ seq }) => Number(seq)).filter((seq) => !left.has(seq))
    // While they were copied.
    if (acknowledged.length > 0) await acknowledge(acknowledged)
  }
  await purgeElsewhere(connection, id)
  return document !== null
}

function keep(connection: Connection, { seq, target_id, event }: OutboxItem): Promise<unknown> {
  const key = { _id: Long.fromNumber(Number(seq)) }
  const insert = { $setOnInsert: { target_id, event } }
  return connection.read(({ orphans }, options) =>
    retriedOnce(() => orphans.updateOne(key, insert, { upsert: true, ...options })),
  )
}

async function purgeElsewhere(connection: Connection, id: string): Promise<void> {
  const pull = { $pull: { outbox: { target_id: id } } } as object
  await Promise.all([
    // Python's count of the steps.
    connection.read(({ counters }, options) => counters.deleteOne({ _id: `trace:${id}` }, options)),
    connection.read(({ traces }, options) => traces.deleteOne({ _id: id }, options)),
    connection.read(({ orphans }, options) => orphans.deleteMany({ target_id: id }, options)),
    connection.read(({ executions }, options) => executions.updateMany({ 'outbox.target_id': id }, pull, options)),
  ])
}
