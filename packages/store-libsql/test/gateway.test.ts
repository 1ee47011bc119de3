import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LibsqlStore } from '@harel/store-libsql'
import { expect, onTestFinished, test } from 'vitest'
import { clientOf, execution } from './helpers.js'

/** The URL of something that stands in front of a server and answers every request by itself. */
async function gateway(status: number): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end('no')).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  { status: 401, retryable: false },
  { status: 403, retryable: false },
  { status: 404, retryable: false },
  { status: 408, retryable: true },
  { status: 429, retryable: true },
])('what is refused with status $status was not done, and may be tried again: $retryable', async (expected) => {
  const { status, retryable } = expected
  const store = new LibsqlStore(clientOf({ url: await gateway(status) }))
  const held = execution('a')
  const refused = { code: 'STORE_UNAVAILABLE', retryable }
  await expect(store.load('a')).rejects.toMatchObject(refused)
  await expect(store.commit(held)).rejects.toMatchObject(refused)
  expect(held.version).toBe(0)
})
