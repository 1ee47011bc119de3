import { setTimeout as sleep } from 'node:timers/promises'

/** How slowly bytes get through; both hold for each direction of each connection. */
export interface Pace {
  /** How long what has arrived waits before it goes on, in milliseconds. Default: 0. */
  latencyMs?: number
  /** Default: as fast as it goes. */
  bytesPerSecond?: number
}

/** What is to happen to one request. */
export interface Doom<Fate> {
  readonly fate: Fate
  /** To be called when it has happened. */
  readonly done: () => void
}

/** What a proxy does to that which goes through it, whatever protocol that is. */
export class Impairment<Fate> {
  #dooms: (Doom<Fate> & { readonly containing: string })[] = []
  #pace: Pace = {}
  /** Resolves when bytes may go on. */
  #gate = Promise.withResolvers<void>()
  #isRefusing = false

  constructor() {
    this.#gate.resolve()
  }

  get isRefusing(): boolean {
    return this.#isRefusing
  }

  /** Resolves when it has happened to the next request with this text in it, or has been called off. */
  doomNext(fate: Fate, containing: string): Promise<void> {
    return new Promise((done) => this.#dooms.push({ fate, containing, done }))
  }

  /** What is to happen to the request that contains these texts, and to no other then. */
  doomOf(contains: (text: string) => boolean): Doom<Fate> | undefined {
    const index = this.#dooms.findIndex(({ containing }) => contains(containing))
    return index < 0 ? undefined : this.#dooms.splice(index, 1)[0]
  }

  /** Resolves when so many bytes have had their time and may go on. */
  async pass(bytes: number): Promise<void> {
    const { latencyMs = 0, bytesPerSecond = Number.POSITIVE_INFINITY } = this.#pace
    const milliseconds = latencyMs + (bytes / bytesPerSecond) * 1000
    if (milliseconds > 0) await sleep(milliseconds)
    await this.#gate.promise
  }

  refuse(): void {
    this.#isRefusing = true
  }

  hold(): void {
    this.#gate = Promise.withResolvers()
  }

  slowDown(pace: Pace): void {
    this.#pace = pace
  }

  restore(): void {
    this.#pace = {}
    this.#isRefusing = false
    for (const { done } of this.#dooms.splice(0)) done()
    this.#gate.resolve()
  }
}
