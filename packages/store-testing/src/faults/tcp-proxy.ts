import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Where a connection ends: the server never sees the request, sees it when the client is gone, has answered it to nobody,
 * or is cut short in its reply.
 */
export type Cut = 'before the request' | 'behind the request' | 'after the request' | 'within the reply'

export const CUTS: readonly Cut[] = [
  'before the request',
  'behind the request',
  'after the request',
  'within the reply',
]

/** How slowly bytes get through; both hold for each direction of each connection. */
export interface Pace {
  /** How long what has arrived waits before it goes on, in milliseconds. Default: 0. */
  latencyMs?: number
  /** Default: as fast as it goes. */
  bytesPerSecond?: number
}

interface Doom {
  readonly cut: Cut
  readonly containing: string
  readonly done: () => void
}

/** One connection of a client, and the one to the server that belongs to it. */
class Link {
  readonly client: Socket
  readonly server: Socket
  /** The client has asked and has not been answered. */
  isWaiting = false
  doom: Doom | undefined

  constructor(client: Socket, server: Socket) {
    this.client = client
    this.server = server
    for (const socket of [client, server]) socket.setNoDelay().on('error', () => this.cut())
    for (const socket of [client, server]) socket.on('close', () => this.cut())
  }

  cut(): void {
    this.client.destroy()
    this.server.destroy()
  }
}

/**
 * Stands between clients and a server that speaks over TCP, in this process. It counts round trips, and it loses, delays
 * and holds up what goes through it. It takes what arrives at once for one request, as most clients send it.
 */
export class TcpProxy implements AsyncDisposable {
  readonly #listener: Server
  readonly #links = new Set<Link>()
  #dooms: Doom[] = []
  #pace: Pace = {}
  #isRefusing = false
  /** Resolves when bytes may go on. */
  #gate = Promise.withResolvers<void>()
  /** The server's URL with the proxy's host and port. */
  readonly url: string
  /** How often a client has sent something after it had been answered. */
  roundTrips = 0

  private constructor(target: URL, listener: Server) {
    this.#listener = listener
    this.#gate.resolve()
    const url = new URL(target)
    url.hostname = '127.0.0.1'
    url.port = String((listener.address() as AddressInfo).port)
    this.url = url.href
    listener.on('connection', (client) => this.#join(client, target))
  }

  /** One to the server of this URL, which names its port. */
  static async to(target: string | URL): Promise<TcpProxy> {
    const listener = createServer()
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    return new TcpProxy(new URL(target), listener)
  }

  /**
   * Cuts the connection of the next request, or of the next one with this text in it. Called again before that, the cuts
   * come one after the other. Resolves when it has happened.
   */
  cutNext(cut: Cut, containing = ''): Promise<void> {
    return new Promise((done) => this.#dooms.push({ cut, containing, done }))
  }

  /** Cuts all connections; new ones are welcome. */
  cutAll(): void {
    for (const link of this.#links) link.cut()
  }

  /** Cuts all connections, and new ones as soon as they are made. */
  refuse(): void {
    this.#isRefusing = true
    this.cutAll()
  }

  /** Connections stay, and nothing gets through any more: half-open, as after a cable was pulled. */
  hold(): void {
    this.#gate = Promise.withResolvers()
  }

  slowDown(pace: Pace): void {
    this.#pace = pace
  }

  /** Everything gets through again, what was held up included. Cuts that have not happened are called off. */
  restore(): void {
    this.#pace = {}
    this.#isRefusing = false
    for (const { done } of this.#dooms.splice(0)) done()
    this.#gate.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    this.cutAll()
    this.restore()
  }

  #join(client: Socket, { hostname, port }: URL): void {
    if (this.#isRefusing) {
      client.destroy()
      return
    }
    const link = new Link(client, connect(Number(port), hostname))
    this.#links.add(link)
    client.once('close', () => this.#links.delete(link))
    for (const direction of [this.#ask(link), this.#answer(link)]) direction.catch(() => link.cut())
  }

  async #ask(link: Link): Promise<void> {
    for await (const request of link.client as AsyncIterable<Buffer>) {
      if (!link.isWaiting) this.roundTrips++
      link.isWaiting = true
      link.doom ??= this.#doomOf(request)
      if (link.doom?.cut === 'before the request') this.#cut(link)
      else await this.#pass(request, link.server)
      if (link.doom?.cut === 'behind the request') link.server.write('', () => this.#cut(link))
    }
    link.cut()
  }

  async #answer(link: Link): Promise<void> {
    for await (const reply of link.server as AsyncIterable<Buffer>) {
      link.isWaiting = false
      if (link.doom === undefined) {
        await this.#pass(reply, link.client)
        continue
      }
      if (link.doom.cut === 'within the reply') {
        await new Promise((written) => link.client.write(reply.subarray(0, reply.length >> 1), written))
      }
      this.#cut(link)
    }
    link.cut()
  }

  #doomOf(request: Buffer): Doom | undefined {
    const index = this.#dooms.findIndex(({ containing }) => request.includes(containing))
    return index < 0 ? undefined : this.#dooms.splice(index, 1)[0]
  }

  #cut(link: Link): void {
    link.cut()
    link.doom?.done()
  }

  async #pass(bytes: Buffer, to: Socket): Promise<void> {
    const { latencyMs = 0, bytesPerSecond = Number.POSITIVE_INFINITY } = this.#pace
    const milliseconds = latencyMs + (bytes.length / bytesPerSecond) * 1000
    if (milliseconds > 0) await sleep(milliseconds)
    await this.#gate.promise
    if (!to.write(bytes) && !to.destroyed) await once(to, 'drain')
  }
}
