/** @libsql/client alone: batches of the statements of `guarded-by-hand.ts`. */
import type { Client } from '@libsql/client'
import type { Database } from './guarded-by-hand.ts'

export const databaseOf = (client: Client): Database => ({
  async write(statements) {
    const batch = statements.map(([sql, ...args]) => ({ sql, args }))
    const results = await client.batch(batch, 'write')
    return results.map(({ rowsAffected, lastInsertRowid }) => ({
      changes: rowsAffected,
      lastId: Number(lastInsertRowid),
    }))
  },
  async read([sql, ...args]) {
    return (await client.execute({ sql, args })).rows
  },
})
