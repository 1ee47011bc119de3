import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeExecution, newExecution } from '@harel/store-base'
import { expect, test } from 'vitest'
import { allocated, type Shares, sharesOf, timed } from '../src/profiler.ts'
import { traffic } from '../src/sockets.ts'

const TOKEN = '01234567-89ab-4cde-8f01-23456789abcd'

const ownerOf = (shares: Shares): string | undefined => Object.entries(shares).toSorted(([, a], [, b]) => b - a)[0]?.[0]

const execution = newExecution({
  definitionId: 'd',
  context: { list: Array.from({ length: 500 }, (_, n) => ({ n })) },
})
const encode = () => encodeExecution(execution, 1, TOKEN)

test('the time of store code is its own, and waiting for events is nobody’s', async () => {
  const { result, shares } = await timed(async () => {
    await sleep(300)
    const end = performance.now() + 200
    let times = 0
    for (; performance.now() < end; times++) encode()
    return times
  })
  expect(result).toBeGreaterThan(1)
  expect(ownerOf(shares)).toBe('code')
  expect(shares.code).toBeGreaterThan(100_000)
  expect(shares.code + shares.driver + shares.node + shares.collector).toBeLessThan(400_000)
})

test('what was collected meanwhile counts as allocated', async () => {
  const { shares } = await allocated(async () => {
    for (let n = 0; n < 1000; n++) {
      encode()
      if (n % 10 === 0) await sleep(0)
    }
  })
  expect(ownerOf(shares)).toBe('code')
  // More than a young generation holds.
  expect(shares.code).toBeGreaterThan(20_000_000)
})

test('shares are those of one operation', () => {
  const part = { code: 6, driver: 4, node: 2, collector: 0, bench: 8 }
  expect(sharesOf([part, part], 4)).toEqual({ code: 3, driver: 2, node: 1, collector: 0, bench: 4 })
})

test('bytes are counted through all connections, also when they have closed', async () => {
  const server = createServer((socket) => socket.end('x'.repeat(700)).resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const before = traffic()
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.end('y'.repeat(300)).resume()
  await once(socket, 'close')
  server.close()
  const after = traffic()
  expect([after.sent - before.sent, after.received - before.received]).toEqual([300, 700])
})
