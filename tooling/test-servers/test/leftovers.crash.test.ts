import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { beforeEach, expect, test, vi } from 'vitest'
import { startServer } from '../src/index.ts'
import { type Elsewhere, startElsewhere } from './elsewhere.ts'
import { redis } from './probes.ts'
import { processes } from './survives.ts'

// Processes, not containers, also where an engine answers.
beforeEach(() => void vi.stubEnv('DOCKER_HOST', 'unix:///nowhere').stubEnv('HAREL_TEST_REDIS_IMAGE', ''))

async function expectNothingLeft({ url, folder }: Elsewhere): Promise<void> {
  await expect.poll(() => processes()).not.toContain(new URL(url).port)
  expect(existsSync(folder ?? '')).toBe(false)
}

test.for(['exit', 'throw', 'finish'] as const)('a server ends with its process (%s)', async (end) => {
  const started = await startElsewhere(end)
  await once(started.child, 'exit')
  await expectNothingLeft(started)
})

test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a server ends with its process, and %s stays the cause',
  async (signal) => {
    const started = await startElsewhere('wait')
    expect(await redis.read(started.url)).toBe(null)
    started.child.kill(signal)
    expect(await once(started.child, 'exit')).toEqual([null, signal])
    await expectNothingLeft(started)
  },
)

test('what a killed process has left is removed by the next start; what a living one uses is not', async () => {
  const [killed, living] = await Promise.all([startElsewhere('wait'), startElsewhere('wait')])
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
