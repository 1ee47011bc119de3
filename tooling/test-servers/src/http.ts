/** GET, or POST of `body`; rejects after 2 s, and when the answer is not a success. Credentials in the URL are used. */
export async function request(url: string, path: string, body?: unknown, headers = {}): Promise<Response> {
  const target = new URL(path, url)
  const { username, password } = target
  target.username = ''
  target.password = ''
  const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  const response = await fetch(target, {
    signal: AbortSignal.timeout(2000),
    headers: { ...(username && { authorization: `Basic ${basic}` }), ...headers },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${target} answered ${response.status}: ${(await response.text()).slice(0, 200)}`)
  return response
}
