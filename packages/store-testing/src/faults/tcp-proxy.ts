import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { type Doom, Impairment, type Pace } from './impairment.js'

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

/** One connection of a client, and the one to the server that belongs to it. */
class Link {
  readonly client: Socket
  readonly server: Socket
  /** The client has asked and has not been answered. */
  isWaiting = false
  doom: Doom<Cut> | undefined

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
  readonly #impairment = new Impairment<Cut>()
  /** The server's URL with the proxy's host and port. */
  readonly url: string
  /** How often a client has sent something after it had been answered. */
  roundTrips = 0

  private constructor(target: URL, listener: Server) {
    this.#listener = listener
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
    return this.#impairment.doomNext(cut, containing)
  }

  /** Cuts all connections; new ones are welcome. */
  cutAll(): void {
    for (const link of this.#links) link.cut()
  }

  /** Cuts all connections, and new ones as soon as they are made. */
  refuse(): void {
    this.#impairment.refuse()
    this.cutAll()
  }

  /** Connections stay, and nothing gets through any more: half-open, as after a cable was pulled. */
  hold(): void {
    this.#impairment.hold()
  }

  slowDown(pace: Pace): void {
    this.#impairment.slowDown(pace)
  }

  /** Everything gets through again, what was held up included. Cuts that have not happened are called off. */
  restore(): void {
    this.#impairment.restore()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    this.cutAll()
    this.restore()
  }

  #join(client: Socket, { hostname, port }: URL): void {
    if (this.#impairment.isRefusing) {
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
      link.doom ??= this.#impairment.doomOf((text) => request.includes(text))
      if (link.doom?.fate === 'before the request') this.#cut(link)
      else await this.#pass(request, link.server)
      if (link.doom?.fate === 'behind the request') link.server.write('', () => this.#cut(link))
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
      if (link.doom.fate === 'within the reply') {
        await new Promise((written) => link.client.write(reply.subarray(0, reply.length >> 1), written))
      }
      this.#cut(link)
    }
    link.cut()
  }

  #cut(link: Link): void {
    link.cut()
    link.doom?.done()
  }

  async #pass(bytes: Buffer, to: Socket): Promise<void> {
    await this.#impairment.pass(bytes.length)
    if (!to.write(bytes) && !to.destroyed) await once(to, 'drain')
  }
}
