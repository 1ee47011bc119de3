import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

type Loss = 'request' | 'reply' | 'half the reply'

/** A way to a server on which requests and replies get lost. */
export class Way {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #loss: { what: Loss; text: string; done: () => void } | undefined
  #delay: ((release: () => Promise<void>) => void) | undefined
  #state: 'open' | 'slamming' | 'silent' = 'open'
  #port = 0

  private constructor(target: URL) {
    this.#server = createServer((near) => {
      if (this.#state === 'slamming') return near.destroy()
      const far = connect(Number(target.port), target.hostname)
      const end = () => {
        near.destroy()
        far.destroy()
      }
      for (const socket of [near, far]) {
        this.#sockets.add(socket)
        socket.on('error', end).on('close', end)
        socket.once('close', () => this.#sockets.delete(socket))
      }
      let isReplyLost = false
      near.on('data', (request) => {
        if (this.#delay !== undefined && request.includes('evalsha')) {
          near.off('close', end).destroy()
          this.#delay(async () => {
            far.write(request)
            await once(far, 'data')
            far.destroy()
          })
          this.#delay = undefined
          return
        }
        const loss = this.#loss
        if (loss !== undefined && request.includes(loss.text)) {
          this.#loss = undefined
          if (loss.what === 'request') {
            end()
            return loss.done()
          }
          isReplyLost = true
          // The reply says that the server has done what it was asked.
          far.once('data', (reply) => {
            const part = loss.what === 'half the reply' ? reply.subarray(0, reply.length >> 1) : ''
            near.write(part, end)
            loss.done()
          })
        }
        if (this.#state !== 'silent') far.write(request)
      })
      far.on('data', (reply) => {
        if (!isReplyLost && this.#state !== 'silent') near.write(reply)
      })
    })
  }

  /** One to the server of this URL, which goes with the test. */
  static async to(url: string): Promise<Way> {
    const way = new Way(new URL(url))
    await way.open()
    onTestFinished(() => way.close())
    return way
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`
  }

  /** Lets everything through (again). */
  async open(): Promise<void> {
    this.#state = 'open'
    if (this.#server.listening) return
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Cuts the connection over which the next request with this text comes, before it or its (whole) reply gets through. */
  lose(what: Loss, text = 'evalsha'): Promise<void> {
    return new Promise((done) => {
      this.#loss = { what, text, done }
    })
  }

  /**
   * Keeps the next script on its way while the client's connection is cut. Resolves then, to what lets it arrive at last
   * and waits until it has run.
   */
  delay(): Promise<() => Promise<void>> {
    return new Promise((resolve) => {
      this.#delay = (release) => resolve(release)
    })
  }

  /** Cuts all connections and refuses new ones. */
  close(): void {
    this.refuse()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Refuses new connections. */
  refuse(): void {
    this.#server.close()
  }

  /** Cuts all connections, and new ones as soon as they are made. */
  slam(): void {
    this.#state = 'slamming'
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Lets nothing through any more, and says nothing. */
  silence(): void {
    this.#state = 'silent'
  }
}
