import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { deserialize, serialize } from 'node:v8'
import {
  CheckedStore,
  type ExecutionStore,
  OutcomeUnknown,
  type PreparedCommit,
  type StoreBackend,
  StoreUnavailable,
  type Verdict,
} from '@harel/store-base'
import type { OpenOptions } from '@harel/store-testing'
import { capabilities, MemoryBackend, Tables } from '../memory-database.ts'

interface Request {
  method: string
  args: unknown[]
  traceMax: number
}

interface Answer {
  value: unknown
}

// Not as JSON, which has no Infinity.
const encode = (value: Request | Answer): string => `${serialize(value).toString('base64')}\n`
const decode = (line: string): unknown => deserialize(Buffer.from(line, 'base64'))

/** Tables in memory behind a port: each line, or each body of a POST, is a request, or its answer. */
export class MemoryServer implements AsyncDisposable {
  readonly #listener: Server
  readonly #sockets = new Set<Socket>()
  readonly #scheme: string
  #tables = new Tables()
  #saved: Tables | undefined
  #port = 0

  private constructor(breakBackend: (backend: MemoryBackend) => void, speaks: 'tcp' | 'http') {
    const answer = (request: string): string => {
      const { method, args, traceMax } = decode(request) as Request
      const backend = new MemoryBackend(this.#tables, traceMax, capabilities)
      breakBackend(backend)
      return encode({ value: (Reflect.get(backend, method) as (...args: unknown[]) => unknown).apply(backend, args) })
    }
    const overTcp = () =>
      createServer((socket) => {
        const lines = createInterface(socket)
        for (const emitter of [socket, lines]) emitter.on('error', () => {})
        lines.on('line', (line) => socket.write(answer(line)))
      })
    const overHttp = () =>
      createHttpServer((request, response) => {
        // Without a whole request there is nobody to answer.
        text(request).then(
          (body) => response.end(answer(body)),
          () => {},
        )
      })
    this.#scheme = speaks === 'http' ? 'http' : 'memory'
    this.#listener = speaks === 'http' ? overHttp() : overTcp()
    this.#listener.on('connection', (socket: Socket) => {
      this.#sockets.add(socket.once('close', () => this.#sockets.delete(socket)))
    })
  }

  static async start(
    breakBackend: (backend: MemoryBackend) => void = () => {},
    speaks: 'tcp' | 'http' = 'tcp',
  ): Promise<MemoryServer> {
    const server = new MemoryServer(breakBackend, speaks)
    await server.restart()
    return server
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.#port}`
  }

  /** What is written from here on does not outlive a kill: the server of a database that does not sync. */
  forgetFromHere(): void {
    this.#saved = Tables.copyOf(this.#tables)
  }

  get isEmpty(): boolean {
    return this.#tables.executions.size === 0
  }

  empty(): void {
    this.#tables = new Tables()
  }

  async kill(): Promise<void> {
    this.#listener.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#listener, 'close')
    if (this.#saved !== undefined) this.#tables = Tables.copyOf(this.#saved)
  }

  async restart(): Promise<void> {
    this.#listener.listen(this.#port, '127.0.0.1')
    await once(this.#listener, 'listening')
    this.#port = (this.#listener.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

/** One request over a connection of its own. */
async function askOverTcp(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).on('error', () => {})
  try {
    await once(socket, 'connect')
  } catch (error) {
    throw new StoreUnavailable('the server is away', error)
  }
  try {
    socket.write(request)
    let reply = ''
    for await (const part of socket.setEncoding('utf8')) {
      reply += part
      if (reply.endsWith('\n')) return reply
    }
    throw new Error('the connection was closed')
  } catch (error) {
    throw new OutcomeUnknown('the reply was lost', error)
  } finally {
    socket.destroy()
  }
}

/** Somebody has answered in the server's place. */
export class BadGateway extends Error {}

async function askOverHttp(url: string, request: string): Promise<string> {
  try {
    const response = await fetch(url, { method: 'POST', body: request })
    if (!response.ok) throw new BadGateway(await response.text())
    return await response.text()
  } catch (error) {
    throw new OutcomeUnknown('the reply was lost', error)
  }
}

async function ask(url: string, request: Request): Promise<unknown> {
  const reply = await (url.startsWith('http:') ? askOverHttp : askOverTcp)(url, encode(request))
  return (decode(reply) as Answer).value
}

/** Sends a commit, and makes of a lost reply what it likes. */
export type SendCommit = (send: () => Promise<Verdict>, commit: PreparedCommit) => Promise<Verdict>

/** A store on such a server. */
export function openRemote(
  url: string,
  { traceMax = 200, ...options }: OpenOptions,
  sendCommit: SendCommit = (send) => send(),
): ExecutionStore {
  const call = (method: string, args: unknown[]) => ask(url, { method, args, traceMax })
  const read = async (method: string, args: unknown[]) => {
    try {
      return (await call(method, args)) ?? undefined
    } catch (error) {
      throw new StoreUnavailable('the server is away', error)
    }
  }
  const backend = new Proxy({} as StoreBackend, {
    get(_target, method: string) {
      if (method === 'capabilities') return capabilities
      if (method === 'close') return async () => {}
      if (method === 'commit') {
        return (commit: PreparedCommit) => sendCommit(() => call(method, [commit]) as Promise<Verdict>, commit)
      }
      return (...args: unknown[]) => read(method, args)
    },
  })
  return new CheckedStore(backend, options)
}
