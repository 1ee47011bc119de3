import { Cluster } from 'ioredis'
import { expect, test } from 'vitest'
import { startServer } from '../../src/index.ts'
import * as probes from '../probes.ts'
import { expectToSurvive } from '../survives.ts'

test('PostgreSQL 15 survives SIGKILL', async () => {
  const server = await startServer('postgres', { own: true, flavour: '15' })
  expect(server.describe()).toMatch(/^postgres 15\.\d+ from/)
  await expectToSurvive(server, probes.postgres)
})

test.for([
  ['redis7', /^redis 7\./],
  ['valkey9', /^valkey 9\./],
] as const)('%s survives SIGKILL', async ([flavour, description]) => {
  const server = await startServer('redis', { own: true, flavour })
  expect(server.describe()).toMatch(description)
  await expectToSurvive(server, probes.redis)
})

test('mongo survives SIGKILL', async () => {
  await expectToSurvive(await startServer('mongo', { own: true }), probes.mongo)
})

test('dynamodb survives SIGKILL', async () => {
  await expectToSurvive(await startServer('dynamodb', { own: true }), probes.dynamodb)
})

test('the second DynamoDB witness serves', async () => {
  await using server = await startServer('dynamodb', { own: true, flavour: 'ministack' })
  expect(server.describe()).toBe('ministack 1.5.33 from registry package')
  await probes.dynamodb.write(server.url)
  expect(await probes.dynamodb.read(server.url)).toBe('kept')
})

test('a Redis cluster shares its slots among three masters and is whole again after one was killed', async () => {
  await using server = await startServer('redis', { cluster: true })
  const client = new Cluster(server.nodes.map(({ url }) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })))
  const keys = Array.from({ length: 50 }, (_, number) => `key ${number}`)
  for (const key of keys) await client.set(key, key)
  expect(client.nodes('master')).toHaveLength(3)
  await server.nodes[1]?.kill()
  await server.nodes[1]?.restart()
  for (const key of keys) expect(await client.get(key)).toBe(key)
  client.disconnect()
})

test('three rqlite nodes go on when their leader is killed', async () => {
  await using server = await startServer('rqlite', { nodes: 3 })
  const [leader, second, third] = server.nodes
  await probes.rqlite.write(leader?.url ?? '')
  await leader?.kill()
  await expect.poll(() => probes.rqlite.read(second?.url ?? '').catch(String), { timeout: 20_000 }).toBe('kept')
  expect(await probes.rqlite.read(third?.url ?? '')).toBe('kept')
  await leader?.restart()
  expect(await probes.rqlite.read(leader?.url ?? '')).toBe('kept')
})

test('pgbouncer gives a client another session with each transaction', async () => {
  await using upstream = await startServer('postgres', { own: true })
  await using pool = await startServer('pgbouncer', { upstream: upstream.url })
  expect(pool.describe()).toMatch(/^pgbouncer 1\.\d+\.\d+ from/)
  await probes.postgres.write(pool.url)
  await pool.kill()
  await pool.restart()
  expect(await probes.postgres.read(upstream.url)).toBe('kept')
  const sessions = await probes.sessionsOf(pool.url, 20)
  expect(sessions.size).toBeGreaterThan(1)
  expect(sessions.size).toBeLessThanOrEqual(5)
})
