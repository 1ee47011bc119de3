import { InvalidArgument, LibsqlStore, StoreConflict } from '@harel/store-libsql'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { clientOf, everything, execution, freshFile, open, rows } from './helpers.js'

let prefixes = 0

withServer('libsql', ({ url: syncUrl }) => {
  describe('an embedded replica', () => {
    const setUp = async () => {
      const prefix = `replica${process.pid}_${++prefixes}`
      const url = freshFile()
      const store = await open({ url, syncUrl }, { prefix })
      return { url, prefix, store, other: await open({ url: syncUrl }, { prefix }) }
    }

    test('loads what the primary has just been told by somebody else (B72, weakness 3, weakness 48)', async () => {
      const { store, other } = await setUp()
      const held = execution('a')
      for (let version = 1; version <= 5; version++) {
        await other.commit(held, everything('a'))
        expect((await store.load('a'))?.version).toBe(version)
        expect(await store.loadForEvent('a', 'a-event')).toEqual({ execution: held, processed: true })
        expect(await store.isProcessed('a', 'a-event')).toBe(true)
        expect(await store.pendingOutbox()).toHaveLength(version)
      }
    })

    test('has its commits decided by the primary (weakness 48)', async () => {
      const { store, other } = await setUp()
      const stale = execution('a')
      await other.commit(execution('a'))
      await expect(store.commit(stale, everything('a'))).rejects.toBeInstanceOf(StoreConflict)
      const held = (await store.load('a')) ?? expect.unreachable()
      await store.commit(held, everything('a'))
      expect(await other.load('a')).toEqual(held)
      await store.transaction(async (inner) => {
        await inner.commit(held)
        expect((await inner.load('a'))?.version).toBe(3)
      })
      expect((await other.load('a'))?.version).toBe(3)
    })

    test('lists, from its file, what was committed before', async () => {
      const { url, prefix, store, other } = await setUp()
      for (const [n, writer] of [store, other, store, other].entries()) {
        await writer.commit(execution(`e${n}`), everything(`e${n}`))
        expect((await store.listExecutions({ status: 'PENDING' })).items).toHaveLength(n + 1)
        expect(await store.idsWithPrefix('e')).toHaveLength(n + 1)
        expect(await store.readTrace(`e${n}`)).toHaveLength(1)
      }
      await store.close()
      expect(await rows(clientOf({ url }), prefix)).toEqual([4, 4, 4, 4, 4, 4])
    })

    test("is refused as a caller's client: through it the primary is not asked for everything", async () => {
      const client = clientOf({ url: freshFile(), syncUrl })
      await expect(new LibsqlStore(client).load('a')).rejects.toThrow(InvalidArgument)
      await expect(new LibsqlStore(client).load('a')).rejects.toThrow('LibsqlStore.connect')
    })
  })
})
