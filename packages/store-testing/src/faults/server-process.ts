import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { settled } from './patience.js'

/** A server, and how it is started. */
export interface ServerProgram {
  readonly command: string
  readonly args?: readonly string[]
  readonly cwd?: string
  /** Beside the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Resolves when the server answers, rejects while it does not; asked again and again. */
  ready(): Promise<unknown>
  /** How long it may take until it answers, in milliseconds. Default: 30000. */
  readonly patienceMs?: number
}

/** How much is kept of what a server says. */
const KEPT_CHARACTERS = 4000

/** Longer than anything that was killed takes to go. */
const GONE_MS = 5000

const isWindows = process.platform === 'win32'

/**
 * A process that serves, for `UnderFaults.server`: it can be killed, and started again by the same command. The port and
 * the data that it is to find again are a matter of its arguments. It ends when this process exits, at the latest.
 */
export class ServerProcess implements AsyncDisposable {
  readonly #program: ServerProgram
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  /** Resolves when nobody can say anything any more. */
  #silent: Promise<void> = Promise.resolve()
  #hasEnded = true
  #output = ''
  readonly #onExit = () => this.#send('SIGKILL')

  private constructor(program: ServerProgram) {
    this.#program = program
  }

  /** Resolves when the server answers. @throws Error as `restart` does */
  static async start(program: ServerProgram): Promise<ServerProcess> {
    const server = new ServerProcess(program)
    await server.restart()
    return server
  }

  /** Of the process that is running, or was the last to run. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Ends it with SIGKILL, and its children with it if they are in its process group; resolves when they are gone. */
  async kill(): Promise<void> {
    this.#send('SIGKILL')
    process.off('exit', this.#onExit)
    await this.#ended
    const deadline = performance.now() + GONE_MS
    while (this.#send(0) && hasLiving(this.pid) && performance.now() < deadline) await sleep(10)
    this.#child = undefined
  }

  /**
   * Starts it again, after a `kill` if it is running; resolves when it answers.
   *
   * @throws Error with the end of its output when it ends or does not answer in time; then nothing is left of it
   */
  async restart(): Promise<void> {
    await this.kill()
    this.#spawn()
    const failure = await this.#untilReady()
    if (failure === undefined) return
    await this.kill()
    // What it has said may still be on the way.
    await settled(this.#silent, 'its output', GONE_MS).catch(() => {})
    const { message, cause } = failure
    throw new Error(`${message}. The end of its output:\n${this.#output.trim()}`, { cause })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }

  #spawn(): void {
    const { command, args = [], cwd, env } = this.#program
    const child = spawn(command, args, {
      ...(cwd !== undefined && { cwd }),
      env: { ...process.env, ...env },
      // A group of its own, so that its children can be killed with it.
      detached: !isWindows,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#output = ''
    // What cannot be started has no process id.
    this.#hasEnded = child.pid === undefined
    const keep = (text: string) => {
      this.#output = `${this.#output}${text}`.slice(-KEPT_CHARACTERS)
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', keep)
    this.#silent = new Promise((resolve) => child.once('close', () => resolve()))
    this.#ended = new Promise((resolve) => {
      const end = () => {
        this.#hasEnded = true
        resolve()
      }
      child.once('exit', end).once('error', (error) => {
        keep(error.message)
        end()
      })
    })
    process.on('exit', this.#onExit)
  }

  /** Why it does not serve; undefined when it does. */
  async #untilReady(): Promise<Error | undefined> {
    const { command, patienceMs = 30_000 } = this.#program
    const deadline = performance.now() + patienceMs
    for (;;) {
      const left = Math.max(0, deadline - performance.now())
      const asked = Promise.race([this.#ended, settled(this.#program.ready(), 'the server', left)])
      const [answer] = await Promise.allSettled([asked])
      // It was this process that answered, not another one on its port.
      if (this.#hasEnded) return new Error(`${command} has ended instead of serving`)
      if (answer.status === 'fulfilled') return undefined
      if (performance.now() >= deadline) {
        return new Error(`${command} does not answer within ${patienceMs / 1000} s`, { cause: answer.reason })
      }
      await sleep(25)
    }
  }

  /** Whether the process or one of its group was there to get it; 0 only asks. */
  #send(signal: NodeJS.Signals | 0): boolean {
    const pid = this.#child?.pid
    if (pid === undefined) return false
    try {
      return process.kill(isWindows ? pid : -pid, signal)
    } catch {
      return false
    }
  }
}

/** Whether a process group holds more than what is dead and still to be asked after, where that can be told. */
function hasLiving(group: number | undefined): boolean {
  if (process.platform !== 'linux') return true
  return readdirSync('/proc').some((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      // The program's name stands in parentheses and may hold anything.
      const [state = '', , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return Number(processGroup) === group && !'ZX'.includes(state)
    } catch {
      return false
    }
  })
}
