import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startServer } from '../src/index.ts'
import { startElsewhere } from './elsewhere.ts'
import { redis } from './probes.ts'
import { expectToSurvive } from './survives.ts'

// Runs only where a container engine answers.

test('a server in a container keeps its port and its data through SIGKILL, and is gone after its stop', async () => {
  const server = await startServer('redis', { own: true })
  expect(server.describe()).toMatch(/^(redis|valkey) \S+ from container$/)
  await expectToSurvive(server, redis)
})

test.for(['exit', 'throw', 'finish'] as const)('a container ends with its process (%s)', async (end) => {
  const { child, url } = await startElsewhere(end)
  if (child.exitCode === null) await once(child, 'exit')
  await expect.poll(() => redis.read(url).catch(() => 'gone'), { timeout: 10_000 }).toBe('gone')
})

test('the container of a killed process is removed by the next start; that of a living one is not', async () => {
  const [killed, living] = await Promise.all([startElsewhere('wait'), startElsewhere('wait')])
  await redis.write(living.url)
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')
  expect(await redis.read(killed.url)).toBe(null)
  await using server = await startServer('redis', { own: true })
  await expect(redis.read(killed.url)).rejects.toThrow()
  expect(await redis.read(server.url)).toBe(null)
  expect(await redis.read(living.url)).toBe('kept')
  living.child.kill()
  await once(living.child, 'exit')
})
