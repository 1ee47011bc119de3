import type { IndexDescription } from 'mongodb'
import { INDEXES } from './collections.js'
import type { Connection } from './connection.js'
import { isMissing } from './errors.js'

/** Makes the indexes that are missing; where none is, the right to look is enough. */
export async function prepareIndexes(connection: Connection): Promise<void> {
  const there = await connection.read(({ executions }) =>
    executions
      .listIndexes()
      .toArray()
      .catch((error: unknown) => {
        if (isMissing(error)) return []
        throw error
      }),
  )
  const names = new Set(there.map(({ name }) => name))
  const missing = INDEXES.filter(({ name }) => !names.has(name))
  if (missing.length === 0) return
  await connection.read(({ executions }) =>
    executions.createIndexes(missing.map((index): IndexDescription => ({ ...index }))),
  )
}
