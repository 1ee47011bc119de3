import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { startServer } from '../src/index.ts'
import { redis } from './probes.ts'
import { processes } from './survives.ts'

// Processes, not containers, also where an engine answers.
beforeEach(() => void vi.stubEnv('DOCKER_HOST', 'unix:///nowhere').stubEnv('HAREL_TEST_REDIS_IMAGE', ''))

interface Started {
  child: ChildProcess
  url: string
  folder: string
}

async function start(end: string): Promise<Started> {
  const program = join(import.meta.dirname, 'starter.ts')
  const child = spawn(process.execPath, [program, end], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = await once(child.stdout, 'data')
  return { child, ...JSON.parse(String(line)) }
}

async function expectNothingLeft({ url, folder }: Started): Promise<void> {
  await expect.poll(() => processes()).not.toContain(new URL(url).port)
  expect(existsSync(folder)).toBe(false)
}

test.for(['exit', 'throw', 'finish'])('a server ends with its process (%s)', async (end) => {
  const started = await start(end)
  await once(started.child, 'exit')
  await expectNothingLeft(started)
})

test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a server ends with its process, and %s stays the cause',
  async (signal) => {
    const started = await start('wait')
    expect(await redis.read(started.url)).toBe(null)
    started.child.kill(signal)
    expect(await once(started.child, 'exit')).toEqual([null, signal])
    await expectNothingLeft(started)
  },
)

test('what a killed process has left is removed by the next start; what a living one uses is not', async () => {
  const [killed, living] = await Promise.all([start('wait'), start('wait')])
  await redis.write(living.url)
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')
  expect(await redis.read(killed.url)).toBe(null)

  await using server = await startServer('redis', { own: true })
  await expectNothingLeft(killed)
  expect(await redis.read(server.url)).toBe(null)
  expect(await redis.read(living.url)).toBe('kept')
  living.child.kill()
  await once(living.child, 'exit')
})
