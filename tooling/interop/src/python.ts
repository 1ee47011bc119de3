import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { JsonObject } from '@harel/store-base'
import { EVENTS, PREFIXES } from '@harel-tooling/canonical'
import { interpreter } from './install.js'
import type { Part } from './scenario.js'

type Answer = { value: unknown } | { error: string }

/** A store of Python harel, in a process of its own. */
export class PythonStore implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #answers: AsyncIterator<string>

  constructor(url: string, prefix: string) {
    const driver = join(import.meta.dirname, '..', 'driver.py')
    this.#process = spawn(interpreter, [driver, url, prefix], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#answers = createInterface(this.#process.stdout)[Symbol.asyncIterator]()
  }

  async #call(verb: string, ...args: unknown[]): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify([verb, ...args])}\n`)
    const line = await this.#answers.next()
    if (line.done === true) throw new Error(`Python ended during ${verb}`)
    const answer: Answer = JSON.parse(line.value)
    if ('error' in answer) throw new Error(`Python failed to ${verb}: ${answer.error}`)
    return answer.value
  }

  async play(parts: readonly Part[]): Promise<void> {
    for (const part of parts) await this.#call('play', part)
  }

  /** As `canonical` of `@harel-tooling/canonical`, with ranks. */
  canonical(ns: string): Promise<unknown> {
    return this.#call('canonical', ns, EVENTS, PREFIXES)
  }

  /** Runs Python's own contracts on what is stored, rejecting with the first that is not kept. */
  async contracts(ns: string, twin: 'sync' | 'async'): Promise<void> {
    await this.#call(twin === 'sync' ? 'contracts' : 'async_contracts', ns)
  }

  /** Has Python's `DurableRunner` create a `Parcel`: its status and its path. */
  create(id: string): Promise<unknown> {
    return this.#call('create', id)
  }

  /** Has it handle an event, a second and a half later: the status and the path of the execution. */
  send(id: string, kind: string, data: JsonObject = {}): Promise<unknown> {
    return this.#call('send', id, kind, data)
  }

  /** Fires what is due after so many seconds more: how many timers. */
  wait(seconds: number): Promise<unknown> {
    return this.#call('wait', seconds)
  }

  /** A command of its control plane: the status and the path that come of it. */
  command(name: 'suspend' | 'resume' | 'terminate', id: string): Promise<unknown> {
    return this.#call('command', name, id)
  }

  /** The status and the path of an execution; null if there is none. */
  show(id: string): Promise<unknown> {
    return this.#call('show', id)
  }

  /** Id, definition, status and path of each execution that the filters of its `list_executions` let through. */
  list(filters: { roots_only?: boolean; definition_id?: string } = {}): Promise<unknown> {
    return this.#call('list', filters)
  }

  /** Removes a finished tree by its control plane. */
  async purge(id: string): Promise<boolean> {
    return (await this.#call('purge', id)) === true
  }

  /** Loads, counts `by` in the context, and commits; false when somebody was faster. */
  async add(id: string, by: string): Promise<boolean> {
    return (await this.#call('add', id, by)) === true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end()
    if (this.#process.exitCode === null) await once(this.#process, 'exit')
  }
}
