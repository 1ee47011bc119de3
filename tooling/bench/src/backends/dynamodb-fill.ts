import { type AttributeValue, PutItemCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { DynamoStore } from '@harel/store-dynamodb'
import { ANY_ID, DUE, idOf, sample, templates } from '../fill.ts'
import { BYTES, type Subject, subject } from '../subjects.ts'
import { connect } from './dynamodb-by-hand.ts'

/** A transaction takes 100 items, and each of these has three. The stand-in is ten times as fast with them as with batches. */
const PART = 33

const S = (text: string): AttributeValue => ({ S: text })
const N = (value: number): AttributeValue => ({ N: String(value) })
const orNull = (text: string | null): AttributeValue => (text === null ? { NULL: true } : S(text))
const put = (TableName: string, Item: Record<string, AttributeValue>) => ({ Put: { TableName, Item } })

/** Fills tables with so many executions, pending events and due timers. */
export async function fillDynamo(url: string, rows: number): Promise<readonly Subject[]> {
  const client = connect(url)
  const store = new DynamoStore(client)
  // The tables are made when they are needed.
  await store.load('nothing')
  await store.close()
  const { execution, event } = templates()
  const { wire } = subject({ id: ANY_ID }, BYTES, 1)
  const summary = {
    ...{ definition_id: S(wire.definition_id), version: N(1), summary_version: N(1), status: S(wire.status) },
    ...{ outcome: orNull(wire.outcome), active_path: orNull(wire.active_path) },
    ...{ parent_id: orNull(wire.parent_id), finished_at: orNull(null) },
  }
  try {
    for (let from = 0; from < rows; from += PART) {
      const part = Array.from({ length: Math.min(PART, rows - from) }, (_, index) => from + index)
      const TransactItems = part.flatMap((n) => {
        const id = idOf(n)
        return [
          put('harel_executions', { id: S(id), ...summary, data: S(execution.replace(ANY_ID, id)) }),
          put('harel_outbox', { seq: N(n + 1), target_id: S(id), event: S(event) }),
          put('harel_timers', { execution_id: S(id), path: S('due'), fire_at: N(DUE - n), all: S('timers') }),
        ]
      })
      await client.send(new TransactWriteItemsCommand({ TransactItems }))
    }
    await client.send(new PutItemCommand({ TableName: 'harel_counters', Item: { id: S('outbox'), n: N(rows) } }))
  } finally {
    client.destroy()
  }
  return sample(rows)
}
