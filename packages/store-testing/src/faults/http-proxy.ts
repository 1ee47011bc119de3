import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Impairment, type Pace } from './impairment.js'
import type { Cut } from './tcp-proxy.js'

/** An answer in the server's place: of a balancer that has lost it, or of one that limits the rate. */
export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Whether the server gets the request, and its own answer is thrown away. Default: false. */
  readonly afterServer?: boolean
}

/**
 * Stands between clients and a server that speaks HTTP/1.1, in this process. It counts requests, loses them or their
 * replies, and answers in the server's place.
 */
export class HttpProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #target: URL
  readonly #impairment = new Impairment<Cut | Answer>()
  readonly url: string
  requests = 0

  private constructor(target: URL, server: Server) {
    this.#server = server
    this.#target = target
    const url = new URL(target)
    url.hostname = '127.0.0.1'
    url.port = String((server.address() as AddressInfo).port)
    this.url = url.href
    server.on('connection', (client) => {
      if (this.#impairment.isRefusing) client.destroy()
    })
    server.on('request', (request, response) => {
      this.#serve(request, response).catch(() => request.socket.destroy())
    })
  }

  /** One to the server of this http URL. */
  static async to(target: string | URL): Promise<HttpProxy> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new HttpProxy(new URL(target), server)
  }

  /** As `cutNext` of `TcpProxy`; the text may stand in the body, in the path or in a header. */
  cutNext(cut: Cut, containing = ''): Promise<void> {
    return this.#impairment.doomNext(cut, containing)
  }

  /** Answers the next request, or the next one with this text in it, in the server's place. Resolves when that is done. */
  answerNext(answer: Answer, containing = ''): Promise<void> {
    return this.#impairment.doomNext(answer, containing)
  }

  /** Cuts all connections; new ones are welcome. */
  cutAll(): void {
    this.#server.closeAllConnections()
  }

  /** As `refuse` of `TcpProxy`. */
  refuse(): void {
    this.#impairment.refuse()
    this.cutAll()
  }

  /** As `hold` of `TcpProxy`. */
  hold(): void {
    this.#impairment.hold()
  }

  /** As `slowDown` of `TcpProxy`; a request or a reply goes on when all of it has had its time. */
  slowDown(pace: Pace): void {
    this.#impairment.slowDown(pace)
  }

  /** Everything gets through again, what was held up included. What was to be lost and is not yet, is not lost. */
  restore(): void {
    this.#impairment.restore()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.cutAll()
    this.restore()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    this.requests++
    const doom = this.#impairment.doomOf((text) =>
      `${request.url} ${request.rawHeaders.join(' ')} ${body}`.includes(text),
    )
    try {
      await this.#carryOut(doom?.fate, request, body, response)
    } finally {
      doom?.done()
    }
  }

  async #carryOut(
    fate: Cut | Answer | undefined,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    if (fate === 'before the request') return void request.socket.destroy()
    if (typeof fate === 'object') {
      if (fate.afterServer === true) await this.#forward(request, body)
      response.writeHead(fate.status, fate.headers).end(fate.body)
      return
    }
    if (fate === 'behind the request') request.socket.destroy()
    const { status, headers, reply } = await this.#forward(request, body)
    if (fate === 'behind the request') return
    if (fate === 'after the request') return void request.socket.destroy()
    response.writeHead(status, headers)
    if (fate === undefined) return void response.end(reply)
    await new Promise((written) => response.write(reply.subarray(0, reply.length >> 1), written))
    request.socket.destroy()
  }

  #pass(message: IncomingMessage, body: Buffer): Promise<void> {
    return this.#impairment.pass(Buffer.byteLength(message.rawHeaders.join('\r\n')) + body.length)
  }

  async #forward(request: IncomingMessage, body: Buffer) {
    await this.#pass(request, body)
    const { hostname, port } = this.#target
    const { method, url, rawHeaders } = request
    const forwarded = send({ hostname, port, method, path: url, headers: rawHeaders })
    forwarded.end(body)
    const [response] = (await once(forwarded, 'response')) as [IncomingMessage]
    const reply = await buffer(response)
    await this.#pass(response, reply)
    return { status: response.statusCode ?? 500, headers: response.rawHeaders, reply }
  }
}
