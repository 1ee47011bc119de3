import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** What happens to a request: it does not arrive, or its reply does not. */
export type Loss = 'request' | 'reply'

/** A way to a server on which requests and replies get lost. It goes with the test. */
export interface Proxy {
  readonly url: string
  /** The next requests are lost, each the last one of its connection. */
  lose(...losses: Loss[]): void
}

export async function proxyTo(target: string): Promise<Proxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let next: Loss[] = []
  const listener = createServer((client) => {
    const server = connect(Number(port), hostname)
    let lost: Loss | undefined
    let quiet: NodeJS.Timeout | undefined
    const cut = () => {
      for (const socket of [client, server]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', cut).on('close', cut)
    }
    client.on('data', (data) => {
      lost ??= next.shift()
      if (lost === 'request') cut()
      else server.write(data)
    })
    server.on('data', (data) => {
      if (lost !== 'reply') return client.write(data)
      // It may have more to say before it has done everything.
      clearTimeout(quiet)
      quiet = setTimeout(cut, 200)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  return {
    url,
    lose: (...losses) => {
      next = losses
    },
  }
}
