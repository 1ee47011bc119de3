/** `fetch` alone: a request for each transaction of `guarded-by-hand.ts`, and for each question. */
import type { Database, Statement } from './guarded-by-hand.ts'

interface Result {
  error?: string
  values?: (string | number | null)[][]
  rows_affected?: number
  last_insert_id?: number
}

async function ask(url: string, statements: readonly Statement[]): Promise<Result[]> {
  const headers = { 'content-type': 'application/json' }
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(statements) })
  const { results = [], error } = (await reply.json()) as { results?: Result[]; error?: string }
  const failed = error ?? results.find((result) => result.error !== undefined)?.error
  if (failed !== undefined) throw new Error(failed)
  return results
}

export const databaseOf = (url: string): Database => ({
  async write(statements) {
    const results = await ask(new URL('/db/execute?transaction', url).href, statements)
    return results.map(({ rows_affected = 0, last_insert_id = 0 }) => ({
      changes: rows_affected,
      lastId: last_insert_id,
    }))
  },
  /** With every acknowledged write in the rows, as the store reads them by default. */
  async read(statement) {
    const [result] = await ask(new URL('/db/query?level=strong', url).href, [statement])
    return result?.values ?? []
  },
})
