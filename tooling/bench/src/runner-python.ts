/** The runner of Python harel, told by a pipe what to do. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { interpreter, setup } from '@harel-tooling/interop/python'

export interface PythonRunner {
  /** Makes an execution of `counter`, lets one take a step, or runs a `parent` with its child to the end. */
  call(what: 'create' | 'event' | 'tree', id: string): Promise<void>
  end(): void
}

/** @param url of the database; a path means SQLite */
export function startPython(url: string): PythonRunner {
  setup()
  const program = join(import.meta.dirname, 'runner-python.py')
  const python = spawn(interpreter, [program, url, 'python'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>()
  createInterface(python.stdout).on('line', (id) => {
    waiting.get(id)?.resolve()
    waiting.delete(id)
  })
  python.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('Python has ended'))
  })
  return {
    call: (what, id) =>
      new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        python.stdin.write(`${JSON.stringify([what, id])}\n`)
      }),
    end: () => python.kill(),
  }
}
