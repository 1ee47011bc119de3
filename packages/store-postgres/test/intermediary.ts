import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** What becomes of a request, and of all that would follow on its connection. */
type Fate = 'lost before it arrives' | 'answered to nobody' | 'left behind'

/** A connection through the proxy: what the client calls a server, and what calls itself a client there. */
interface Pair {
  readonly client: Socket
  readonly server: Socket
}

/** Stands between clients and a server, counts their round trips, and cuts connections. */
export class Intermediary {
  readonly url: string
  /** How often a client has sent something after it had got an answer. */
  roundTrips = 0
  #fate: Fate | undefined
  readonly #pairs = new Set<Pair>()

  private constructor(url: string) {
    this.url = url
  }

  static async start(target: string): Promise<Intermediary> {
    const { hostname, port } = new URL(target)
    const listener = createServer((client) => between.#join({ client, server: connect(Number(port), hostname) }))
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const url = new URL(target)
    url.hostname = '127.0.0.1'
    url.port = String((listener.address() as AddressInfo).port)
    const between = new Intermediary(url.href)
    onTestFinished(() => {
      between.cutAll()
      listener.close()
    })
    return between
  }

  /** The next request is its connection's last one. */
  doom(fate: Fate): void {
    this.#fate = fate
  }

  cutAll(): void {
    for (const pair of this.#pairs) cut(pair)
  }

  #join(pair: Pair): void {
    const { client, server } = pair
    let waiting = false
    let fate: Fate | undefined
    client.on('data', (request) => {
      if (!waiting) this.roundTrips++
      waiting = true
      fate ??= this.#fate
      this.#fate = undefined
      if (fate === 'lost before it arrives') cut(pair)
      else if (fate === 'left behind') server.write(request, () => cut(pair))
      else server.write(request)
    })
    server.on('data', (answer) => {
      waiting = false
      if (fate === 'answered to nobody') cut(pair)
      else client.write(answer)
    })
    for (const socket of [client, server]) {
      socket.on('error', () => cut(pair))
      socket.on('close', () => {
        cut(pair)
        this.#pairs.delete(pair)
      })
    }
    this.#pairs.add(pair)
  }
}

function cut({ client, server }: Pair): void {
  client.destroy()
  server.destroy()
}
