import { InvalidArgument, StoreUnavailable } from '@harel/store-redis'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { execution, parts } from '../commits.js'
import { describeContracts } from '../contracts.js'
import { clientFor, freshPrefix, keysOf, storeOn } from '../database.js'

describe.each(['redis8', 'redis7', 'valkey9'] as const)('three masters (%s)', (flavour) => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer('redis', { own: true, flavour, cluster: true })
    console.log(`${server.describe()}, three masters`)
  })
  afterAll(() => server?.stop())

  const cluster = (options = {}) =>
    new Cluster(
      server.nodes.map(({ url }) => url),
      options,
    )
  const clusterForTest = (options = {}) => {
    const client = cluster(options)
    onTestFinished(() => client.disconnect())
    return client
  }

  describeContracts('RedisStore on a Cluster', { client: cluster, hashTag: true })

  test('all keys of a prefix are on one node, whatever braces the ids have; prefixes are on several (B45, weakness 33)', async () => {
    const client = clusterForTest()
    const slots = new Set<unknown>()
    for (let n = 0; n < 5; n++) {
      const prefix = freshPrefix()
      const store = storeOn(client, { prefix, hashTag: true })
      for (const id of ['a', '{b}', 'c}{d', '{}', '{other}']) await store.commit(execution(id), parts(id))
      await store.listExecutions()
      const keys = await keysOf(client, `{${prefix}}:`)
      const own = new Set(await Promise.all(keys.map((key) => client.cluster('KEYSLOT', key))))
      expect(keys.length).toBeGreaterThan(25)
      expect(own.size).toBe(1)
      for (const slot of own) slots.add(slot)
      expect(await store.reindex()).toEqual({ stored: 5, added: 0, removed: 0, moved: 0 })
      expect(await store.purge('{b}', 1)).toBe(true)
    }
    expect(slots.size).toBeGreaterThan(1)
  })

  test('executions that no index knows are found on whatever node they are', async () => {
    const client = clusterForTest()
    for (let n = 0; n < 3; n++) {
      const prefix = freshPrefix()
      await client.set(`{${prefix}}:exe:p`, '{"id":"p","definition_id":"d","version":1}')
      expect(await storeOn(client, { prefix, hashTag: true }).idsWithPrefix('')).toEqual(['p'])
    }
  })

  test('without hashTag a store is refused by its first call (B45)', async () => {
    await expect(storeOn(clusterForTest()).load('a')).rejects.toThrow(InvalidArgument)
    // A client of one node, which knows nothing of the others.
    const outcomes = await Promise.all(
      server.nodes.map(({ url }) => storeOn(clientFor(url)).commit(execution('a'), parts('a')).catch(String)),
    )
    for (const outcome of outcomes) expect(outcome).toMatch(/InvalidArgument: hashTag|StoreUnavailable.*MOVED/)
  })

  test('the braces of a client that puts its own before every key do as well', async () => {
    const store = storeOn(clusterForTest({ redisOptions: { keyPrefix: '{app}:' } }))
    const held = execution('a')
    await store.commit(held, parts('a'))
    expect(await store.idsWithPrefix('')).toEqual(['a'])
    expect(await store.reindex()).toEqual({ stored: 1, added: 0, removed: 0, moved: 0 })
  })

  test('a client of one node is told where it has to look', async () => {
    const prefix = freshPrefix()
    const outcomes = await Promise.all(
      server.nodes.map(async ({ url }) => {
        const client = new Redis(url)
        onTestFinished(() => client.disconnect())
        return storeOn(client, { prefix, hashTag: true })
          .save(execution('a'))
          .then(
            () => 'saved',
            (error: unknown) => error,
          )
      }),
    )
    expect(outcomes.filter((outcome) => outcome === 'saved')).toHaveLength(1)
    for (const error of outcomes.filter((outcome) => outcome !== 'saved')) {
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(error).toMatchObject({ retryable: false })
      expect(String(error)).toMatch(/MOVED.*Cluster client/)
    }
  })

  test('a node that is killed and restarted is waited for: nothing is lost, nothing twice', async () => {
    const client = clusterForTest({ clusterRetryStrategy: () => 50, retryDelayOnFailover: 100, maxRedirections: 100 })
    const store = storeOn(client, { hashTag: true })
    const held = Array.from({ length: 4 }, (_, n) => execution(`e${n}`))
    const working = Promise.all(
      held.map(async (each) => {
        while (each.version < 100) await store.commit(each, parts(each.id))
      }),
    )
    for (const node of server.nodes) {
      await node.kill()
      await node.restart()
    }
    await working
    expect(await store.pendingOutbox()).toHaveLength(4 * 2 * 100)
  })
})
