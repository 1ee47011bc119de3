import { expect, test } from 'vitest'
import { startServer } from '../src/index.ts'
import * as probes from './probes.ts'
import { expectToSurvive } from './survives.ts'

test.for([
  ['postgres', /^postgres 1[5-9]\.\d+ from/, probes.postgres],
  ['redis', /^redis [78]\.\d+\.\d+ from/, probes.redis],
  ['rqlite', /^rqlite 8\S* from/, probes.rqlite],
  ['libsql', /^sqld 0\.\d+\.\d+ from/, probes.libsql],
] as const)(
  '%s says what it is, keeps its port and its data through SIGKILL, and leaves nothing behind',
  async ([kind, description, probe]) => {
    const server = await startServer(kind, { own: true })
    expect(server.describe()).toMatch(description)
    await expectToSurvive(server, probe)
  },
)

test('servers started at once do not meet', async () => {
  const servers = await Promise.all([startServer('redis', { own: true }), startServer('redis', { own: true })])
  const [first, second] = servers.map((server) => server.url)
  await probes.redis.write(first ?? '')
  expect(await probes.redis.read(first ?? '')).toBe('kept')
  expect(await probes.redis.read(second ?? '')).toBe(null)
  await Promise.all(servers.map((server) => server.stop()))
})
