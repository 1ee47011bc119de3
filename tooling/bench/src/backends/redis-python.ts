import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { interpreter, setup } from '@harel-tooling/interop/python'
import { nextEventId, type Subject } from '../workload.ts'

/** A process of Python harel that commits what it is told. */
export function pythonCommits(url: string, prefix: string) {
  setup()
  const program = join(import.meta.dirname, 'redis-python.py')
  const python = spawn(interpreter, [program, url, prefix], { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>()
  createInterface(python.stdout).on('line', (id) => waiting.get(id)?.resolve())
  python.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('Python has ended'))
  })
  return {
    commit: ({ execution: { id, context } }: Subject) =>
      new Promise<void>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        python.stdin.write(`${JSON.stringify([id, nextEventId(), context.note])}\n`)
      }),
    end: () => python.kill(),
  }
}
