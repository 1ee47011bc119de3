import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { familyOf, identity, kill, untilGone, waitUntilGone } from './identity.ts'
import { recordProcess } from './leftovers.ts'
import type { TestNode } from './server.ts'

export interface Program {
  readonly name: string
  readonly url: string
  readonly command: string
  readonly args: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly user?: { uid: number; gid: number }
  /** Ends it in order, its data complete; SIGTERM when absent. */
  readonly haltSignal?: NodeJS.Signals
  /** Ends it fast when its data is wanted no more; SIGKILL when absent. */
  readonly discardSignal?: NodeJS.Signals
  /** Resolves when the server answers, rejects while it does not. */
  ready(): Promise<unknown>
}

const START_MS = 60_000
const HALT_MS = 10_000
// A killed server can leave a lock or a child behind that keeps its successor from starting for a moment.
const TAKEOVER_MS = 10_000

/** One server process: it serves from `folder`, which must exist, and logs to a file in it. */
export class ServerProcess implements TestNode {
  readonly url: string
  readonly innerUrl: string
  readonly #program: Program
  readonly #folder: string
  #child: ChildProcess | undefined
  #id = ''

  constructor(folder: string, program: Program) {
    this.url = program.url
    this.innerUrl = program.url
    this.#folder = folder
    this.#program = program
  }

  /** Resolves when the server answers. Rejects with the end of its log when it ends or stays silent for a minute. */
  async start(patienceMs = 0): Promise<void> {
    const begin = Date.now()
    let child = this.#spawn()
    for (;;) {
      const waited = Date.now() - begin
      if (hasEnded(child)) {
        if (waited >= patienceMs) throw new Error(`${this.#program.name} ended at its start. ${this.#log()}`)
        await delay(200)
        child = this.#spawn()
      }
      try {
        await this.#program.ready()
        // It was this process that answered, not a stranger on its port.
        if (!hasEnded(child)) return
      } catch (cause) {
        if (waited > START_MS) {
          await this.kill()
          throw new Error(`${this.#program.name} did not answer within ${START_MS / 1000} s. ${this.#log()}`, { cause })
        }
      }
      await delay(25)
    }
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  halt(): Promise<void> {
    return this.#end(this.#program.haltSignal ?? 'SIGTERM')
  }

  discard(): Promise<void> {
    return this.#end(this.#program.discardSignal ?? 'SIGKILL')
  }

  async restart(): Promise<void> {
    await this.halt()
    await this.start(TAKEOVER_MS)
  }

  /** `discard` for the exit of this process, where nothing can be awaited. */
  discardNow(): void {
    const family = familyOf(this.#id)
    if (family.length === 0) return
    this.#child?.kill(this.#program.discardSignal ?? 'SIGKILL')
    waitUntilGone(this.#id, HALT_MS)
    kill(family)
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || hasEnded(child)) return
    const family = familyOf(this.#id)
    // It was let go of so as not to keep this process alive; the wait for its end must.
    child.ref()
    const ended = once(child, 'exit')
    child.kill(signal)
    const late = setTimeout(() => child.kill('SIGKILL'), HALT_MS)
    await ended
    clearTimeout(late)
    // The children of a killed PostgreSQL answer their clients for a moment longer.
    kill(family)
    await untilGone(family)
  }

  #spawn(): ChildProcess {
    const { command, args, environment, user } = this.#program
    const log = openSync(this.#logFile(), 'a')
    // A group of its own: Ctrl-C in a terminal reaches the tests first, and they stop their servers.
    const child = spawn(command, args, {
      cwd: this.#folder,
      detached: true,
      stdio: ['ignore', log, log],
      env: { ...process.env, ...environment },
      ...user,
    })
    closeSync(log)
    child.on('error', () => {})
    child.unref()
    this.#child = child
    this.#id = (child.pid && identity(child.pid)) || ''
    if (this.#id) recordProcess(this.#folder, this.#id)
    return child
  }

  #logFile = (): string => join(this.#folder, `${this.#program.name}.log`)

  #log(): string {
    return `The end of its log:\n${readFileSync(this.#logFile(), 'utf8').trim().split('\n').slice(-8).join('\n')}`
  }
}

// A child that could not be spawned has no process id.
const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null
