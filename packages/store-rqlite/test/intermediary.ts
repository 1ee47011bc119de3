import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** What becomes of a request; behind each but the last two, its connection is cut. */
export type Fate =
  | 'lost before it arrives'
  | 'answered to nobody'
  | 'answered by half'
  | 'left behind'
  /** It never arrives, and its connection stays open. */
  | 'held'
  /** It arrives, its reply does not, and its connection stays open. */
  | 'never answered'
  /** Somebody in between answers it, with a text of HTTP. */
  | { reply: string }

/** Stands between stores and a node, counts requests at the socket, and loses some of them. */
export class Intermediary {
  readonly url: string
  /** The paths of all requests, in their order. */
  readonly requests: string[] = []
  /** What becomes of the next requests, one after the other; afterwards all come through. */
  readonly fates: Fate[] = []
  /** What it makes of a reply. */
  edit: (reply: string) => string = (reply) => reply
  readonly #sockets = new Set<Socket>()

  private constructor(url: string) {
    this.url = url
  }

  static async start(target: string): Promise<Intermediary> {
    const { hostname, port } = new URL(target)
    const listener = createServer((near) => between.#join(near, connect(Number(port), hostname)))
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const between = new Intermediary(`http://127.0.0.1:${(listener.address() as AddressInfo).port}`)
    onTestFinished(() => {
      between.cutAll()
      listener.close()
    })
    return between
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(near: Socket, far: Socket): void {
    let fate: Fate | undefined
    const cut = () => {
      near.destroy()
      far.destroy()
    }
    near.on('data', (data) => {
      const path = /^POST (\S+)/.exec(data.toString('latin1'))?.[1]
      if (path !== undefined) {
        this.requests.push(path)
        fate = this.fates.shift()
      }
      if (fate === 'lost before it arrives') cut()
      else if (fate === 'left behind') far.write(data, () => near.destroy())
      else if (typeof fate === 'object' && path !== undefined) near.write(fate.reply)
      else if (typeof fate !== 'object' && fate !== 'held') far.write(data)
    })
    far.on('data', (data) => {
      if (fate === 'answered to nobody') cut()
      else if (fate === 'answered by half') near.write(data.subarray(0, data.length - 10), cut)
      else if (fate !== 'never answered' && fate !== 'left behind') {
        near.write(this.edit(data.toString('latin1')), 'latin1')
      }
    })
    for (const socket of [near, far]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        if (fate !== 'left behind') cut()
      })
    }
  }
}

/** A reply of HTTP. */
export const reply = (status: number, body: string, ...headers: string[]): { reply: string } => ({
  reply: [`HTTP/1.1 ${status} -`, `content-length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n'),
})
