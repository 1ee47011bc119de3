import { OutcomeUnknown, StoreUnavailable } from '@harel/store-base'
import { CUTS } from '@harel/store-testing/faults'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import {
  connect,
  everything,
  execution,
  many,
  newSchema,
  open,
  pass,
  proxyTo,
  rows,
  useDatabase,
  versions,
} from './helpers.js'

withServer('postgres', (server) => {
  const database = useDatabase(server)

  const setUp = async () => {
    const schema = newSchema()
    const proxy = await proxyTo(database.url)
    // One connection, which meets each statement once before it is put to the test: then it is a single request.
    const store = await open(proxy.url, { schema, client: { max: 1 } })
    const sql = connect(database.url)
    return { schema, proxy, store, sql }
  }

  describe.each(CUTS)('a request whose connection is cut %s', (cut) => {
    test.each([true, false])('is done once, and the commit succeeds (groupCommit: %s)', async (groupCommit) => {
      const { schema, proxy, sql } = await setUp()
      const store = await open(proxy.url, { schema, groupCommit, client: { max: 1 } })
      const held = execution('a')
      await store.commit(held, everything('a'))
      for (let version = 2; version < 6; version++) {
        void proxy.cutNext(cut)
        const [seq] = await store.commit(held, { ...everything('a'), processedEventId: `event-${version}` })
        expect(held.version).toBe(version)
        expect((await store.pendingOutbox()).at(-1)?.seq).toBe(seq)
      }
      expect(await rows(sql, schema)).toEqual([1, 5, 5, 1, 5, 5])
    })

    test('creates an execution once', async () => {
      const { schema, proxy, store, sql } = await setUp()
      await store.commit(execution('first'))
      void proxy.cutNext(cut)
      const held = execution('a')
      await store.commit(held, everything('a'))
      expect(held.version).toBe(1)
      expect(await rows(sql, schema)).toEqual([2, 1, 1, 1, 1, 1])
    })

    test('is done once for each commit of a batch', async () => {
      const { schema, proxy, store, sql } = await setUp()
      const held = many(50)
      await Promise.all(held.map((each) => store.commit(each)))
      void proxy.cutNext(cut)
      const seqs = await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
      expect(versions(held)).toEqual(Array(50).fill(2))
      expect(await rows(sql, schema)).toEqual([50, 50, 50, 50, 50, 50])
      const targets = new Map((await store.pendingOutbox()).map(({ seq, targetId }) => [seq, targetId]))
      expect(seqs.map(([seq]) => targets.get(seq ?? 0))).toEqual(held.map(({ id }) => id))
    })
  })

  test('a request that the server still works on when its connection is gone is not done again', async () => {
    const { schema, proxy, store, sql } = await setUp()
    await sql.unsafe(`CREATE FUNCTION ${schema}.slow() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END';
      CREATE TRIGGER slow BEFORE INSERT ON ${schema}.harel_outbox FOR EACH ROW EXECUTE FUNCTION ${schema}.slow()`)
    for (const id of ['a', 'new']) {
      const held = execution(id)
      if (id === 'a') await store.commit(held)
      const before = held.version
      void proxy.cutNext('behind the request')
      const [seq] = await store.commit(held, everything(id))
      expect(held.version).toBe(before + 1)
      expect(seq).toBe((await store.pendingOutbox()).at(-1)?.seq)
    }
    expect(await rows(sql, schema)).toEqual([2, 2, 2, 2, 2, 2])
  })

  test('a commit that somebody has gone on from is known by its event, and unknown without one', async () => {
    const { schema, proxy, store, sql } = await setUp()
    // Somebody who commits on as soon as there is a version 2.
    await sql.unsafe(`CREATE FUNCTION ${schema}.go_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.version := 3;
        NEW.data := regexp_replace(NEW.data, '"version":2,"commit_token":"[^"]*"', '"version":3,"commit_token":"other"');
        RETURN NEW;
      END $$;
      CREATE TRIGGER go_on BEFORE UPDATE ON ${schema}.harel_executions FOR EACH ROW WHEN (NEW.version = 2)
        EXECUTE FUNCTION ${schema}.go_on()`)
    const held = [execution('a'), execution('b')] as const
    for (const each of held) await store.commit(each)
    void proxy.cutNext('after the request')
    await store.commit(held[0], { processedEventId: 'event' })
    void proxy.cutNext('after the request')
    await expect(store.commit(held[1])).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(versions(held)).toEqual([2, 1])
  })

  test('other calls whose reply is lost fail once, and the next one works (B51, B94)', async () => {
    const { schema, proxy } = await setUp()
    const store = await open(proxy.url, { schema, client: { max: 1 } })
    await store.commit(execution('a'), everything('a'))
    void proxy.cutNext('after the request')
    await expect(store.load('a')).rejects.toBeInstanceOf(StoreUnavailable)
    expect((await store.load('a'))?.version).toBe(1)
    // The connection's first statement of its kind is only described at first.
    await store.ackOutbox(7)
    void proxy.cutNext('after the request')
    await expect(store.ackOutbox(1)).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(await store.pendingOutbox()).toEqual([])
    proxy.cutAll()
    await pass(20)
    expect((await store.load('a'))?.version).toBe(1)
  })
})
