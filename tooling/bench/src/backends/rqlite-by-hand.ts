/** `node:http` alone: a request for each transaction of `guarded-by-hand.ts`, and for each question. */
import { request } from 'node:http'
import type { Database, Statement } from './guarded-by-hand.ts'

interface Result {
  error?: string
  values?: (string | number | null)[][]
  rows_affected?: number
  last_insert_id?: number
}

/** What is answered to a text of JSON. `fetch` would do the same, but takes three times as long of the processor's time. */
const post = (url: string, body: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const posted = request(url, { method: 'POST', headers }, (reply) => {
      let text = ''
      reply.setEncoding('utf8')
      reply.on('data', (part) => {
        text += part
      })
      reply.on('end', () => resolve(text))
      reply.on('error', reject)
    })
    posted.on('error', reject)
    posted.end(body)
  })

async function ask(url: string, statements: readonly Statement[]): Promise<Result[]> {
  const text = await post(url, JSON.stringify(statements))
  const { results = [], error } = JSON.parse(text) as { results?: Result[]; error?: string }
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
