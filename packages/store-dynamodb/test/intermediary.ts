import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** What becomes of a request or its reply. */
export type Fault =
  /** The connection is cut, and nothing is passed on. */
  | 'request lost'
  /** The service does it, and the connection is cut before a word of the reply. */
  | 'reply lost'
  /** The service does it, and the connection is cut in the middle of the reply. */
  | 'reply cut'
  /** Nobody answers. */
  | 'silence'
  /** The connection is cut, and the request is passed on when this has resolved. */
  | { late: Promise<unknown> }
  /** The request is passed on when this has resolved. */
  | { delayed: Promise<unknown> }
  /** The service gets another body. */
  | { altered: (body: string) => string }
  /** An answer in place of the service's. */
  | { status: number; body: object | string }

interface Request {
  readonly operation: string
  readonly body: string
}

/** A service error as DynamoDB answers it. */
export const refusal = (type: string, more: object = {}, status = 400): Fault => ({
  status,
  body: { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: type, ...more },
})

/** A cancelled transaction, with the codes of its reasons. */
export const cancelled = (...codes: string[]): Fault =>
  refusal('TransactionCanceledException', {
    Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    CancellationReasons: codes.map((Code) => ({ Code, Message: Code })),
  })

const pass = () => new Promise((resolve) => setTimeout(resolve, 5))

/** Stands between clients and a server, counts requests, and makes them fail. */
export class Intermediary {
  /** Those that came in, in their order. */
  readonly requests: Request[] = []
  readonly #target: URL
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 100 })
  readonly #sockets = new Set<Socket>()
  readonly #underWay = new Set<Promise<void>>()
  readonly #faults: { operation: string; fault: Fault; left: number }[] = []
  readonly #server: Server
  #choice: { operation: string; choose: () => Fault | undefined } | undefined

  private constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((incoming, response) => {
      // A connection that was cut has nobody to be told.
      const handled = this.#handle(incoming, response)
        .catch(() => void response.destroy())
        .finally(() => this.#underWay.delete(handled))
      this.#underWay.add(handled)
    })
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** One to the server of this URL, which goes with the test. */
  static async to(target: string): Promise<Intermediary> {
    const intermediary = new Intermediary(target)
    intermediary.#server.listen(0, '127.0.0.1')
    await once(intermediary.#server, 'listening')
    onTestFinished(() => intermediary.refuse())
    return intermediary
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The next requests of this operation meet with the fault. */
  fail(operation: string, fault: Fault, times = 1): void {
    this.#faults.push({ operation, fault, left: times })
  }

  /** Every request of this operation meets with what `choose` says, until `heal`. */
  failWhen(operation: string, choose: () => Fault | undefined): void {
    this.#choice = { operation, choose }
  }

  /** No request meets with a fault any more. */
  heal(): void {
    this.#faults.splice(0)
    this.#choice = undefined
  }

  /** The operations that are asked for while something is done. */
  async during(work: () => Promise<unknown>): Promise<string[]> {
    const start = this.requests.length
    await work()
    return this.requests.slice(start).map(({ operation }) => operation)
  }

  /** Resolves when all requests that came in have been passed on and answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Resolves when a request of this operation has come in. */
  async received(operation: string): Promise<void> {
    while (!this.requests.some((each) => each.operation === operation)) await pass()
  }

  /** Resolves when no client is connected any more. */
  async left(): Promise<void> {
    while (this.#sockets.size > 0) await pass()
  }

  /** Cuts all connections and refuses new ones. */
  refuse(): void {
    this.#server.close()
    this.#agent.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  #faultOf(operation: string): Fault | undefined {
    const next = this.#faults.find((each) => each.operation === operation && each.left > 0)
    if (next === undefined) return this.#choice?.operation === operation ? this.#choice.choose() : undefined
    next.left -= 1
    return next.fault
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    const operation = String(incoming.headers['x-amz-target']).split('.')[1] ?? ''
    this.requests.push({ operation, body: body.toString() })
    const fault = this.#faultOf(operation)
    if (fault === 'silence') return
    if (fault === 'request lost') {
      incoming.socket.destroy()
      return
    }
    if (typeof fault === 'object' && 'status' in fault) {
      response.writeHead(fault.status, { 'content-type': 'application/x-amz-json-1.0' })
      response.end(typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body))
      return
    }
    if (typeof fault === 'object' && 'late' in fault) {
      incoming.socket.destroy()
      await fault.late
    }
    if (typeof fault === 'object' && 'delayed' in fault) await fault.delayed
    const altered = typeof fault === 'object' && 'altered' in fault ? fault.altered(body.toString()) : body
    const reply = await this.#passOn(incoming, Buffer.from(altered))
    const text = await buffer(reply)
    if (fault === 'reply lost') {
      incoming.socket.destroy()
      return
    }
    response.writeHead(reply.statusCode ?? 500, { ...reply.headers, 'content-length': text.length })
    if (fault === 'reply cut') response.write(text.subarray(0, text.length >> 1), () => incoming.socket.destroy())
    else response.end(text)
  }

  async #passOn(incoming: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { hostname, port } = this.#target
    const { method = 'POST', headers } = incoming
    const outgoing = request({ hostname, port, method, path: incoming.url, headers, agent: this.#agent })
    outgoing.end(body)
    const [reply] = (await once(outgoing, 'response')) as [IncomingMessage]
    return reply
  }
}
