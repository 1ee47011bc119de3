import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { CUTS, HttpProxy, TcpProxy } from '../../src/faults/index.js'

/** A server that answers each request with the same in capitals, unless it is mute, and keeps what it has got. */
async function shouting({ mute = false } = {}) {
  const got: string[] = []
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (request) => {
        got.push(String(request))
        if (!mute) socket.write(String(request).toUpperCase())
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy = await TcpProxy.to(`tcp://somebody:secret@localhost:${(server.address() as AddressInfo).port}/db?x=1`)
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]()
    server.close()
  })
  return { got, proxy }
}

async function dial({ url }: TcpProxy | HttpProxy): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function ask(socket: Socket, request: string): Promise<string> {
  socket.write(request)
  const reply = await Promise.race([once(socket, 'data'), once(socket, 'close')])
  return String(reply[0])
}

test("the proxy's URL is the server's but for host and port", async () => {
  const { proxy } = await shouting()
  expect(proxy.url).toMatch(/^tcp:\/\/somebody:secret@127\.0\.0\.1:\d+\/db\?x=1$/)
})

test('everything gets through, and round trips are counted', async () => {
  const { got, proxy } = await shouting()
  const socket = await dial(proxy)
  expect([await ask(socket, 'one'), await ask(socket, 'two')]).toEqual(['ONE', 'TWO'])
  expect([got, proxy.roundTrips]).toEqual([['one', 'two'], 2])
})

test('a request is lost before it arrives', async () => {
  const { got, proxy } = await shouting()
  const cut = proxy.cutNext('before the request')
  const socket = await dial(proxy)
  await ask(socket, 'one')
  await cut
  expect([got, socket.closed]).toEqual([[], true])
})

test('a request arrives when its connection is gone, answered or not', async () => {
  const { got, proxy } = await shouting({ mute: true })
  const cut = proxy.cutNext('behind the request')
  const socket = await dial(proxy)
  await ask(socket, 'one')
  await cut
  await expect.poll(() => got).toEqual(['one'])
})

test('a reply is lost after the request has arrived', async () => {
  const { got, proxy } = await shouting()
  const cut = proxy.cutNext('after the request')
  const socket = await dial(proxy)
  const heard = text(socket)
  socket.write('one')
  await cut
  expect([got, await heard.catch(() => '')]).toEqual([['one'], ''])
})

test('a reply is cut in the middle', async () => {
  const { proxy } = await shouting()
  const cut = proxy.cutNext('within the reply')
  const socket = await dial(proxy)
  expect(await ask(socket, 'four')).toBe('FO')
  await cut
  if (!socket.closed) await once(socket, 'close')
})

test('the request that is lost is the one with the text', async () => {
  const { got, proxy } = await shouting()
  const cut = proxy.cutNext('before the request', 'commit')
  const socket = await dial(proxy)
  expect(await ask(socket, 'read')).toBe('READ')
  await ask(socket, 'commit')
  await cut
  expect(got).toEqual(['read'])
})

test('cuts that have not happened are called off', async () => {
  const { proxy } = await shouting()
  const cut = proxy.cutNext('before the request')
  proxy.restore()
  await cut
  expect(await ask(await dial(proxy), 'one')).toBe('ONE')
})

test('what is held up gets through when everything is well again, and the connection stays', async () => {
  const { got, proxy } = await shouting()
  const socket = await dial(proxy)
  await ask(socket, 'one')
  proxy.hold()
  const answer = ask(socket, 'two')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect([got, socket.closed]).toEqual([['one'], false])
  proxy.restore()
  expect(await answer).toBe('TWO')
})

test('a slow connection delivers everything, in order', async () => {
  const { got, proxy } = await shouting()
  proxy.slowDown({ latencyMs: 5, bytesPerSecond: 1000 })
  const socket = await dial(proxy)
  const started = performance.now()
  expect(await ask(socket, 'one')).toBe('ONE')
  expect(performance.now() - started).toBeGreaterThan(10)
  expect(got).toEqual(['one'])
})

test('a proxy that refuses cuts old connections and new ones', async () => {
  const { proxy } = await shouting()
  const old = await dial(proxy)
  await ask(old, 'one')
  proxy.refuse()
  await once(old, 'close')
  const fresh = await dial(proxy)
  await once(fresh, 'close')
  proxy.restore()
  expect(await ask(await dial(proxy), 'two')).toBe('TWO')
})

async function counting({ replyBytes = 0 } = {}) {
  const got: string[] = []
  const server = createHttpServer(async (request, response) => {
    got.push(`${request.method} ${request.url} ${await text(request)}`)
    response.setHeader('x-server', 'real').end(`answer ${got.length}`.padEnd(replyBytes))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy = await HttpProxy.to(`http://localhost:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]()
    server.close()
  })
  return { got, proxy, post: (body: string) => fetch(`${proxy.url}path?q=1`, { method: 'POST', body }) }
}

test('HTTP gets through with its method, path, headers and body, and requests are counted', async () => {
  const { got, proxy, post } = await counting()
  const response = await post('hello')
  expect([await response.text(), response.headers.get('x-server')]).toEqual(['answer 1', 'real'])
  expect([got, proxy.requests]).toEqual([['POST /path?q=1 hello'], 1])
})

test.each(CUTS)('HTTP is cut %s', async (cut) => {
  const { got, proxy, post } = await counting()
  const done = proxy.cutNext(cut)
  await expect(post('lost').then((response) => response.text())).rejects.toThrow()
  await done
  expect(got).toHaveLength(cut === 'before the request' ? 0 : 1)
  expect(await (await post('again')).text()).toMatch(/^answer/)
})

test('HTTP that is held up gets through when everything is well again', async () => {
  const { got, proxy, post } = await counting()
  proxy.hold()
  const answer = post('late')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(got).toEqual([])
  proxy.restore()
  expect(await (await answer).text()).toBe('answer 1')
})

test('HTTP that is slow takes its time in both directions', async () => {
  const { proxy, post } = await counting()
  proxy.slowDown({ latencyMs: 50 })
  const started = performance.now()
  expect(await (await post('slow')).text()).toBe('answer 1')
  expect(performance.now() - started).toBeGreaterThanOrEqual(98)
})

test('HTTP gets through at so many bytes a second, in both directions', async () => {
  const { proxy, post } = await counting({ replyBytes: 2000 })
  const timeOf = async (body: string) => {
    const started = performance.now()
    await (await post(body)).text()
    return performance.now() - started
  }
  proxy.slowDown({ bytesPerSecond: 20_000 })
  // 100 ms for the reply alone.
  expect(await timeOf('')).toBeGreaterThanOrEqual(98)
  // As much for the request.
  expect(await timeOf('x'.repeat(2000))).toBeGreaterThanOrEqual(198)
  proxy.slowDown({ bytesPerSecond: 0.001 })
  proxy.restore()
  await timeOf('as fast as ever')
})

test('HTTP that is refused never arrives, on an old connection or a new one', async () => {
  const { got, proxy, post } = await counting()
  await (await post('before')).text()
  const old = await dial(proxy)
  proxy.refuse()
  if (!old.closed) await once(old, 'close')
  const fresh = await dial(proxy)
  if (!fresh.closed) await once(fresh, 'close')
  await expect(post('meanwhile')).rejects.toThrow()
  proxy.restore()
  expect(await (await post('afterwards')).text()).toBe('answer 2')
  expect(got).toEqual(['POST /path?q=1 before', 'POST /path?q=1 afterwards'])
})

test("an answer in the server's place comes instead of the request or of the reply", async () => {
  const { got, proxy, post } = await counting()
  const answers = [
    proxy.answerNext({ status: 503, headers: { 'retry-after': '1' }, body: 'busy' }, 'first'),
    proxy.answerNext({ status: 502, afterServer: true }, 'second'),
  ]
  const second = await post('second')
  const first = await post('first')
  await Promise.all(answers)
  expect([first.status, first.headers.get('retry-after'), await first.text()]).toEqual([503, '1', 'busy'])
  expect([second.status, got]).toEqual([502, ['POST /path?q=1 second']])
})
