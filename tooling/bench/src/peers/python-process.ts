import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { interpreter, setup } from '@harel-tooling/interop/python'

let isSetUp = false

/** A program of this folder in Python, which answers each line with an id. It starts with the first question. */
export class PythonProcess {
  readonly #args: readonly string[]
  readonly #waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>()
  #process: ChildProcessByStdio<Writable, Readable, null> | undefined

  constructor(program: string, ...args: string[]) {
    this.#args = [join(import.meta.dirname, program), ...args]
  }

  /** Sends a line of JSON, and resolves when it is answered with the id. */
  ask(id: string, line: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#process ??= this.#start()
      this.#process.stdin.write(`${JSON.stringify(line)}\n`)
    })
  }

  #start(): ChildProcessByStdio<Writable, Readable, null> {
    // Asks pip, which takes its time.
    if (!isSetUp) setup()
    isSetUp = true
    const python = spawn(interpreter, this.#args, { stdio: ['pipe', 'pipe', 'inherit'] })
    createInterface(python.stdout).on('line', (id) => {
      this.#waiting.get(id)?.resolve()
      this.#waiting.delete(id)
    })
    python.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('Python has ended'))
    })
    return python
  }

  end(): void {
    this.#process?.kill()
  }
}
