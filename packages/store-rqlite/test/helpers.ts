type Value = string | number | null

/** Rows that one statement gives, past the store. */
export async function request(url: string, sql: string, ...params: Value[]): Promise<Value[][]> {
  const response = await fetch(`${url}/db/request?level=strong`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([[sql, ...params]]),
  })
  const { results, error } = (await response.json()) as {
    results?: { values?: Value[][]; error?: string }[]
    error?: string
  }
  const failure = error ?? results?.[0]?.error
  if (failure !== undefined) throw new Error(failure)
  return results?.[0]?.values ?? []
}
