import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

interface Outcome {
  code: number
  output: string
  /** Of the database; absent when the quick start did not come that far. */
  path: string | undefined
}

/** Runs the quick start to its end. */
export async function runQuickStart(...args: string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, output: output + errors, path: /^database: (.*)$/m.exec(output)?.[1] }
}
