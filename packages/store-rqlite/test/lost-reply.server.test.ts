import { OutcomeUnknown, StoreConflict, StoreUnavailable } from '@harel/store-rqlite'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { everything, execution, failure, many, newPrefix, open, request, rows, versions } from './helpers.js'
import { type Fate, Intermediary, reply } from './intermediary.js'

/** Where only the time tells that no reply comes: long enough for any request here, and short enough to wait for. */
const timeoutFor = (fate: Fate): number => (fate === 'held' || fate === 'never answered' ? 1500 : 10_000)

withServer('rqlite', ({ url }) => {
  const setUp = async (options = {}) => {
    const between = await Intermediary.start(url)
    const prefix = newPrefix()
    const store = await open(between.url, { prefix, failoverTimeout: 0, ...options })
    between.requests.length = 0
    return { between, prefix, store, counts: () => rows(url, prefix) }
  }

  describe.each<Fate>([
    'lost before it arrives',
    'answered to nobody',
    'answered by half',
    'left behind',
    'held',
    'never answered',
    reply(500, 'leadership lost while committing log\n'),
    reply(502, '<html>Bad Gateway</html>'),
    reply(200, '{"results":[],"error":"leadership lost while committing log"}'),
    reply(200, '{"results":[{"last_insert_id":1}]}'),
    reply(200, '{}'),
    reply(200, 'null'),
    reply(200, ''),
    reply(200, 'OK'),
  ])('a request whose fate is %j', (fate) => {
    test.each([true, false])('is done once, and the commit succeeds (groupCommit: %s) (B78)', async (groupCommit) => {
      const { between, store, counts } = await setUp({ groupCommit, timeout: timeoutFor(fate) })
      const held = execution('a')
      for (let version = 1; version <= 2; version++) {
        between.fates.push(fate)
        const [seq] = await store.commit(held, { ...everything('a'), processedEventId: `event-${version}` })
        expect(between.fates).toEqual([])
        expect(held.version).toBe(version)
        expect((await store.pendingOutbox()).at(-1)?.seq).toBe(seq)
      }
      expect(await counts()).toEqual([1, 2, 2, 1, 2, 2])
    })

    test('is done once for each commit of a batch', async () => {
      const { between, store, counts } = await setUp({ timeout: timeoutFor(fate) })
      const held = many(30)
      between.fates.push(fate)
      const seqs = await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
      expect(versions(held)).toEqual(Array(30).fill(1))
      expect(await counts()).toEqual(Array(6).fill(30))
      const targets = new Map((await store.pendingOutbox()).map(({ seq, targetId }) => [seq, targetId]))
      expect(seqs.map(([seq]) => targets.get(seq ?? 0))).toEqual(held.map(({ id }) => id))
    })

    test('twice in a row is done once at most: the commit succeeds or its outcome is unknown', async () => {
      const { between, store, counts } = await setUp({ timeout: timeoutFor(fate) })
      const held = execution('a')
      between.fates.push(fate, fate)
      const error = await failure(store.commit(held, everything('a')))
      const written = await counts()
      if (error === undefined) expect([held.version, ...written]).toEqual(Array(7).fill(1))
      else {
        expect(error).toBeInstanceOf(OutcomeUnknown)
        expect(held.version).toBe(0)
        // What was left behind may have arrived since.
        expect([Array(6).fill(0), Array(6).fill(1)]).toContainEqual(written)
      }
    })
  })

  test('a request that a node still works on when it is sent again is done once', async () => {
    const { between, prefix, store, counts } = await setUp()
    // Long enough for the second request to come meanwhile.
    await request(
      url,
      `CREATE TRIGGER ${prefix}_slow BEFORE INSERT ON ${prefix}_outbox BEGIN
        SELECT COUNT(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT i FROM n); END`,
    )
    const held = execution('a')
    for (let version = 1; version <= 3; version++) {
      between.fates.push('left behind')
      const [seq] = await store.commit(held, { ...everything('a'), processedEventId: `event-${version}` })
      expect(held.version).toBe(version)
      expect((await store.pendingOutbox()).at(-1)?.seq).toBe(seq)
    }
    expect(await counts()).toEqual([1, 3, 3, 1, 3, 3])
  })

  test('a commit whose version somebody else has written meanwhile is a conflict, and leaves no row', async () => {
    const { between, prefix, store, counts } = await setUp({ timeout: timeoutFor('held') })
    const other = await open(url, { prefix })
    between.fates.push('held')
    const lost = failure(store.commit(execution('a'), everything('a')))
    await other.commit(execution('a'))
    expect(await lost).toBeInstanceOf(StoreConflict)
    expect(await counts()).toEqual([1, 0, 0, 0, 0, 0])
  })

  test('a commit that somebody has gone on from is known by its event, and unknown without one', async () => {
    const { between, prefix, store } = await setUp()
    // Somebody who commits on as soon as there is a version 2.
    await request(
      url,
      `CREATE TRIGGER ${prefix}_on AFTER UPDATE OF version ON ${prefix}_executions WHEN NEW.version = 2 BEGIN
        UPDATE ${prefix}_executions SET version = 3, meta_version = 3, data = json_set(data, '$.version', 3, '$.commit_token', 'other')
          WHERE id = NEW.id; END`,
    )
    const held = [execution('a'), execution('b')] as const
    for (const each of held) await store.commit(each)
    between.fates.push('answered to nobody')
    await store.commit(held[0], { processedEventId: 'event' })
    between.fates.push('answered to nobody')
    await expect(store.commit(held[1])).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(versions(held)).toEqual([2, 1])
  })

  test.each<Fate>(['lost before it arrives', 'answered to nobody', 'answered by half', reply(503, 'not leader\n')])(
    'a read whose fate is %j is asked for again',
    async (fate) => {
      const { between, store } = await setUp({ failoverTimeout: 5000 })
      await store.commit(execution('a'), everything('a'))
      between.fates.push(fate, fate, fate)
      expect((await store.load('a'))?.version).toBe(1)
      expect(between.fates).toEqual([])
      between.fates.push(fate)
      expect(await store.pendingOutbox()).toHaveLength(1)
    },
  )

  test('a read that is never answered is StoreUnavailable after its time', async () => {
    const { between, store } = await setUp({ timeout: 1000 })
    for (const fate of ['held', 'never answered'] as const) {
      between.fates.push(fate)
      await expect(store.load('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    }
    expect(await store.load('a')).toBeUndefined()
  })

  test('other writes are sent again only when no node has taken them, and the next one works (B78)', async () => {
    const { between, store } = await setUp({ failoverTimeout: 5000 })
    const held = execution('a')
    await store.commit(held, everything('a'))
    between.requests.length = 0
    const writes = {
      appendTrace: () => store.appendTrace('a', {}),
      ackOutbox: () => store.ackOutbox(1),
      ackSpawn: () => store.ackSpawn(1),
      deleteTimer: () => store.deleteTimer('a', 'P', 1),
      publishDefinition: () => store.publishDefinition({ id: 'd', version: '1', definition: {} }),
      purge: () => store.purge('b', 1),
    }
    const lost = reply(500, 'leadership lost while committing log\n')
    for (const [name, write] of Object.entries(writes)) {
      for (const fate of ['answered to nobody', lost, reply(200, 'null')] as const) {
        between.fates.push(fate)
        expect(await failure(write()), name).toBeInstanceOf(OutcomeUnknown)
        expect(between.requests.splice(0), name).toHaveLength(1)
      }
      for (const fate of [reply(503, 'leader not found\n'), reply(200, '{"results":[],"error":"not leader"}')]) {
        between.fates.push(fate)
        await write()
        expect(between.requests.splice(0), name).toHaveLength(2)
      }
    }
    // With its commit, once with its reply lost, and twice when it was told to wait.
    expect(await store.readTrace('a')).toHaveLength(4)
  })

  test('a commit that no node takes writes nothing, is StoreUnavailable, and can be repeated (B78)', async () => {
    const { between, store, counts } = await setUp()
    const held = execution('a')
    between.fates.push(reply(503, 'leader not found\n'))
    await expect(store.commit(held, everything('a'))).rejects.toBeInstanceOf(StoreUnavailable)
    expect([held.version, ...(await counts())]).toEqual(Array(7).fill(0))
    await store.commit(held, everything('a'))
    expect([held.version, ...(await counts())]).toEqual(Array(7).fill(1))
  })

  test('connections that were cut while nothing was under way cost nothing', async () => {
    const { between, store } = await setUp()
    const held = many(20)
    for (const each of held) {
      await store.commit(each)
      between.cutAll()
    }
    expect(versions(held)).toEqual(Array(20).fill(1))
  })
})
