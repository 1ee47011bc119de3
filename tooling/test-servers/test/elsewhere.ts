import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** A Redis server that another process has started. */
export interface Elsewhere {
  readonly child: ChildProcess
  readonly url: string
  readonly folder?: string
}

/** Runs starter.ts, which then ends in the way that `end` names. */
export async function startElsewhere(end: 'exit' | 'throw' | 'finish' | 'wait'): Promise<Elsewhere> {
  const program = fileURLToPath(import.meta.resolve('./starter.ts'))
  const child = spawn(process.execPath, [program, end], { stdio: ['ignore', 'pipe', 'ignore'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  return { child, ...JSON.parse(String(line)) }
}
