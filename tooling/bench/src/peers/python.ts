/** Stores of Python harel, told by a pipe what to commit. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { interpreter, setup } from '@harel-tooling/interop/python'
import type { Contender } from '../contender.ts'
import { nextEventId, type Subject } from '../subjects.ts'

let isSetUp = false
let processes = 0

/** A process that commits one event with a dedupe id, and ends with `end`. It starts with the first commit. */
class PythonCommits {
  readonly #args: readonly string[]
  readonly #waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>()
  #process: ChildProcessByStdio<Writable, Readable, null> | undefined

  constructor(kind: 'sync' | 'async', url: string) {
    // Its executions are new ones.
    this.#args = [kind, url, `python_${processes++}`]
  }

  commit({ execution: { id, context } }: Subject): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#process ??= this.#start()
      this.#process.stdin.write(`${JSON.stringify([id, nextEventId(), context.note])}\n`)
    })
  }

  #start(): ChildProcessByStdio<Writable, Readable, null> {
    // Asks pip, which takes its time.
    if (!isSetUp) setup()
    isSetUp = true
    const program = join(import.meta.dirname, 'python.py')
    const python = spawn(interpreter, [program, ...this.#args], { stdio: ['pipe', 'pipe', 'inherit'] })
    createInterface(python.stdout).on('line', (id) => this.#waiting.get(id)?.resolve())
    python.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('Python has ended'))
    })
    return python
  }

  end(): void {
    this.#process?.kill()
  }
}

/** Both kinds of store. The synchronous one commits one after the other. @param url a path means SQLite */
export function pythonStores(url: string): { contenders: Contender[]; end(): void } {
  const [sync, async] = [new PythonCommits('sync', url), new PythonCommits('async', url)]
  return {
    contenders: [
      {
        name: 'Python harel',
        role: 'peer',
        does: { commit: (subject) => sync.commit(subject) },
        isElsewhere: true,
        upTo: 1,
      },
      {
        name: 'Python harel, async',
        role: 'peer',
        does: { commit: (subject) => async.commit(subject) },
        isElsewhere: true,
      },
    ],
    end() {
      sync.end()
      async.end()
    },
  }
}
