import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

test('the contracts run under node:test too, and show what they skip', { timeout: 60_000 }, async () => {
  const program = fileURLToPath(new URL('programs/contracts.ts', import.meta.url))
  const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', program], { maxBuffer: 1 << 25 })
  const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(stdout)?.[1])
  expect(count('pass')).toBeGreaterThan(200)
  expect(count('skipped')).toBeGreaterThan(20)
  expect(count('fail')).toBe(0)
  expect(stdout).toMatch(/a purge leaves no row \(B96\) \[skipped: no probe that counts rows\] # SKIP/)
})
