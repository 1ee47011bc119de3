import assert from 'node:assert/strict'
import { type Spawn, type SpawnEntry, spawns } from '@harel/store-base'
import { assertionOf, type Contract } from '../contract.js'
import { all, assertAscending, everything, execution, spawnsOf, stored } from '../fixtures.js'

const spawn = (ns: string, name: string, fields: Partial<Spawn> = {}): Spawn => ({
  childId: ns + name,
  rootPath: '',
  context: {},
  ...fields,
})

const withoutSeqs = (entries: readonly SpawnEntry[]) => entries.map(({ seq: _seq, ...entry }) => entry)

export const spawnContract: Contract = {
  name: 'spawns',
  checks: [
    {
      title: 'children are queued with their commit, in its order, and leave when acknowledged',
      async run({ store, ns }) {
        const parent = execution(ns, 'parent')
        await store.commit(parent, { spawns: [spawn(ns, 'z'), spawn(ns, 'a'), spawn(ns, 'm')] })
        await store.commit(parent, { spawns: [spawn(ns, 'b')] })
        const queued = await spawnsOf(store, ns)
        assertAscending(queued.map(({ seq }) => seq))
        assert.deepEqual(
          queued.map(({ childId }) => childId),
          ['z', 'a', 'm', 'b'].map((name) => ns + name),
        )
        await store.ackSpawn(queued[1]?.seq ?? 0)
        assert.deepEqual(
          await spawnsOf(store, ns),
          queued.filter((_, index) => index !== 1),
        )
        await store.ackSpawn(queued.map(({ seq }) => seq))
        assert.deepEqual(await spawnsOf(store, ns), [])
      },
    },
    {
      title: 'a child is queued with its parent, its root path and its context, as committed',
      async run({ store, ns }) {
        const children = [
          spawn(ns, 'region', { rootPath: 'Order/Region.a$b' }),
          spawn(ns, 'invoked', { context: { __invoke_fqn__: 'app.Sub', list: [], none: null, nul: 'a\u0000b' } }),
          spawn(ns, 'e:P:0:0', { context: JSON.parse('{"__proto__":{"x":1}}') }),
        ]
        const { id } = await stored(store, ns, 'e', {}, { spawns: children })
        assert.deepEqual(
          withoutSeqs(await spawnsOf(store, ns)),
          children.map((child) => ({ parentId: id, ...child })),
        )
      },
    },
    {
      title: 'one child may be queued twice',
      reports: ['B74'],
      async run({ store, ns }) {
        await stored(store, ns, 'e', {}, { spawns: [spawn(ns, 'c'), spawn(ns, 'c')] })
        assert.equal((await spawnsOf(store, ns)).length, 2)
      },
    },
    {
      title: 'a spawn seq is never given out again, not even after the queue was emptied',
      async run({ store, ns }) {
        const parent = execution(ns)
        const seen: number[] = []
        for (let n = 0; n < 4; n++) {
          await store.commit(parent, { spawns: [spawn(ns, `a${n}`), spawn(ns, `b${n}`)] })
          const seqs = (await spawnsOf(store, ns)).map(({ seq }) => seq)
          seen.push(...seqs)
          await store.ackSpawn(seqs)
        }
        assert.equal(new Set(seen).size, 8)
      },
    },
    {
      title: 'more than a hundred children in one commit are all queued, or the commit is refused before it is sent',
      reports: ['B71'],
      weaknesses: [31],
      async run({ store, ns, capabilities }) {
        const children = Array.from({ length: 101 }, (_, n) => spawn(ns, `c${n}`))
        const parent = execution(ns)
        if (capabilities.maxCommitWrites < 102) {
          await assert.rejects(store.commit(parent, { spawns: children }), { code: 'COMMIT_TOO_LARGE' })
          assert.equal(parent.version, 0)
          assert.deepEqual(await spawnsOf(store, ns), [])
          return
        }
        await store.commit(parent, { spawns: children })
        assert.deepEqual(
          (await spawnsOf(store, ns)).map(({ childId }) => childId),
          children.map(({ childId }) => childId),
        )
      },
    },
    {
      title: 'acknowledging twice, or what was never queued, changes nothing and is no error',
      async run({ store, ns }) {
        await stored(store, ns, 'e', {}, { spawns: [spawn(ns, 'a'), spawn(ns, 'b')] })
        const [first, second] = await spawnsOf(store, ns)
        const seq = first?.seq ?? 0
        await store.ackSpawn(seq)
        await store.ackSpawn([seq, seq])
        await store.ackSpawn([])
        await store.ackSpawn(Number.MAX_SAFE_INTEGER)
        assert.deepEqual(await spawnsOf(store, ns), [second])
      },
    },
    {
      title: 'acknowledging a spawn leaves the event of the same number',
      async run({ store, ns }) {
        await stored(store, ns, 'e', {}, everything(ns, 'e'))
        const events = await store.pendingOutbox()
        await store.ackSpawn(events.filter(({ event }) => event.id.startsWith(ns)).map(({ seq }) => seq))
        assert.deepEqual(await store.pendingOutbox(), events)
      },
    },
    {
      title: 'a page holds at most its limit, and pages that go on behind each other hold everything once',
      weaknesses: [27],
      async run({ store, ns }) {
        const names = Array.from({ length: 23 }, (_, n) => `c${n}`)
        await stored(store, ns, 'e', {}, { spawns: names.map((name) => spawn(ns, name)) })
        for (const limit of [1, 5, 23, 1000]) {
          const page = await store.pendingSpawns({ limit })
          assert(page.length <= limit, `a page of ${limit} holds ${page.length} entries`)
          const own = (await all(spawns(store, limit))).filter(({ parentId }) => parentId.startsWith(ns))
          assert.deepEqual(
            own.map(({ childId }) => childId.slice(ns.length)),
            names,
            `in pages of ${limit}`,
          )
        }
      },
    },
    {
      title: 'a spawn stays queued when the child it names exists, goes on or is purged',
      async run({ store, ns }) {
        await stored(store, ns, 'e', {}, { spawns: [spawn(ns, 'c')] })
        const queued = await spawnsOf(store, ns)
        const child = await stored(store, ns, 'c', { parentId: `${ns}e` })
        await store.commit(child)
        assert.equal(await store.purge(child.id, child.version), true)
        assert.deepEqual(await spawnsOf(store, ns), queued)
      },
    },
  ],
}

/** Children to be created: queued with their commit, in order, until acknowledged. */
export const assertSpawns = assertionOf(spawnContract)
