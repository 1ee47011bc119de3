import assert from 'node:assert/strict'
import { type DueTimer, type TimerOp, timers } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type Contract } from '../contract.js'
import { all, byBytes, execution, loaded, stored, timersOf } from '../fixtures.js'

const arm = (path: string, fireAt: number): TimerOp => ({ action: 'schedule', path, fireAt })
const cancel = (path: string): TimerOp => ({ action: 'cancel', path })

const byTime = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || byBytes(a.executionId, b.executionId) || byBytes(a.path, b.path)

/** What one commit with these operations leaves armed, where `old` was armed at 5 before. */
const folded: readonly { title: string; ops: TimerOp[]; left: [path: string, fireAt: number][] }[] = [
  { title: 'arming an armed timer replaces its time', ops: [arm('old', 9)], left: [['old', 9]] },
  { title: 'cancelling a timer removes it', ops: [cancel('old')], left: [] },
  { title: 'cancelling a timer that is not armed is no error', ops: [cancel('none')], left: [['old', 5]] },
  {
    title: 'of cancelling and arming one timer in a commit, the later counts: armed',
    ops: [cancel('old'), arm('old', 7)],
    left: [['old', 7]],
  },
  {
    title: 'of arming and cancelling one timer in a commit, the later counts: cancelled',
    ops: [arm('old', 7), arm('new', 1), cancel('old'), cancel('new')],
    left: [],
  },
  {
    title: 'of two times for one timer in a commit, the later in the list counts',
    ops: [arm('new', 9), arm('new', 3)],
    left: [
      ['new', 3],
      ['old', 5],
    ],
  },
]

/** Paths that a store might take for something else. */
const PATHS = ['@ttl', 'A/B.c', '$set', 'a.b.c', '%', '*', 'P', 'p', '\u00e9', 'e\u0301', '"\\\'', '😀', '\uffff']

export const timerContract: Contract = {
  name: 'timers',
  checks: [
    {
      title: 'a timer is due from its time on, that very moment included',
      reports: ['B80', 'B81'],
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', {}, { timers: [arm('P', 100.5)] })
        const timer = { executionId: id, path: 'P', fireAt: 100.5 }
        assert.deepEqual(await timersOf(store, ns, 100.4999), [])
        assert.deepEqual(await timersOf(store, ns, 100.5), [timer])
        assert.deepEqual(await timersOf(store, ns, 1e18), [timer])
      },
    },
    {
      title: 'reading due timers does not remove them',
      async run({ store, ns }) {
        await stored(store, ns, 'e', {}, { timers: [arm('P', 1)] })
        const due = await timersOf(store, ns, 2)
        assert.equal(due.length, 1)
        assert.deepEqual(await timersOf(store, ns, 2), due)
      },
    },
    ...folded.map(({ title, ops, left }) => ({
      title,
      weaknesses: [5],
      async run({ store, ns }: Parameters<Contract['checks'][number]['run']>[0]) {
        const held = await stored(store, ns, 'e', {}, { timers: [arm('old', 5)] })
        await store.commit(held, { timers: ops })
        assert.deepEqual(
          (await timersOf(store, ns)).map(({ path, fireAt }) => [path, fireAt]),
          left,
        )
      },
    })),
    {
      title: 'a commit without timers leaves those that are armed',
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', {}, { timers: [arm('P', 5)] })
        await store.commit({ ...held, status: 'DONE' })
        assert.equal((await timersOf(store, ns)).length, 1)
      },
    },
    {
      title: 'timers come by time, then by id, then by path, compared by bytes',
      async run({ store, ns }) {
        const expected: DueTimer[] = []
        for (const name of ['b', 'a', '\u{1f600}', '\uffff', 'B']) {
          const ops = ['z', 'A', '\u{1f600}', '\uffff'].map((path) => arm(path, path === 'A' ? 9 : 10))
          const { id } = await stored(store, ns, name, {}, { timers: ops })
          expected.push(...ops.map((op) => ({ executionId: id, path: op.path, fireAt: op.path === 'A' ? 9 : 10 })))
        }
        assert.deepEqual(await timersOf(store, ns), expected.sort(byTime))
      },
    },
    {
      title: 'times are ordered as numbers and kept to the last bit',
      reports: ['B18', 'B28', 'B81', 'B84'],
      async run({ store, ns }) {
        const seconds = [
          ...cases.timers_ms.absolute.map((ms) => ms / 1000),
          ...cases.timers_ms.instants.map((text) => Date.parse(text) / 1000),
          ...[2, 10, 9, 1e16, 0.1 + 0.2, 1700000000.0000002, 5e-324, -0.5, 1e18],
        ]
        const times = [...new Set(seconds)].sort((a, b) => a - b)
        await stored(store, ns, 'e', {}, { timers: times.map((fireAt, n) => arm(`P${n}`, fireAt)) })
        const due = await timersOf(store, ns)
        assert.deepEqual(
          due.map(({ fireAt }) => fireAt),
          times,
        )
        for (const { executionId, path, fireAt } of due) await store.deleteTimer(executionId, path, fireAt)
        assert.deepEqual(await timersOf(store, ns), [])
      },
    },
    {
      title: 'times are the same in every time zone in which a process may run',
      reports: ['B84'],
      async run({ store, ns }) {
        const times = cases.timers_ms.instants.map((text) => Date.parse(text) / 1000).sort((a, b) => a - b)
        const zones = ['Asia/Kolkata', 'America/St_Johns', 'Pacific/Chatham']
        const { TZ } = process.env
        try {
          for (const [n, zone] of zones.entries()) {
            process.env.TZ = zone
            const [createdAt = 0, finishedAt = 0] = times
            const ops = times.map((fireAt, n) => arm(`P${n}`, fireAt))
            const held = await stored(store, ns, zone, { createdAt, finishedAt }, { timers: ops })
            process.env.TZ = zones[(n + 1) % zones.length]
            assert.deepEqual(await loaded(store, held.id), held)
            for (const [n, now] of times.entries()) {
              const due = await timersOf(store, held.id, now)
              assert.deepEqual(
                due.map(({ fireAt }) => fireAt),
                times.slice(0, n + 1),
                zone,
              )
              assert.equal((await timersOf(store, held.id, now - 0.001)).length, n)
            }
          }
        } finally {
          if (TZ === undefined) delete process.env.TZ
          else process.env.TZ = TZ
        }
      },
    },
    {
      title: 'timers of one path belong to their executions',
      async run({ store, ns }) {
        const a = await stored(store, ns, 'a', {}, { timers: [arm('P', 1)] })
        const b = await stored(store, ns, 'a:P', {}, { timers: [arm('P', 2)] })
        await store.commit(a, { timers: [cancel('P')] })
        assert.deepEqual(await timersOf(store, ns), [{ executionId: b.id, path: 'P', fireAt: 2 }])
      },
    },
    {
      title: 'paths are told apart by their bytes, whatever characters they hold',
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', {}, { timers: PATHS.map((path, n) => arm(path, n)) })
        assert.deepEqual(
          (await timersOf(store, ns)).map(({ path, fireAt }) => [path, fireAt]),
          PATHS.map((path, n) => [path, n]),
        )
        for (const [n, path] of PATHS.entries()) {
          if (n % 2 === 0) await store.deleteTimer(held.id, path, n)
          else await store.commit(held, { timers: [cancel(path)] })
          assert.equal((await timersOf(store, ns)).length, PATHS.length - 1 - n)
        }
      },
    },
    {
      title: 'deleteTimer removes the timer that holds exactly this time',
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', {}, { timers: [arm('P', 0.1 + 0.2), arm('Q', 1)] })
        assert.equal(await store.deleteTimer(id, 'P', 0.1 + 0.2), undefined)
        assert.deepEqual(await timersOf(store, ns), [{ executionId: id, path: 'Q', fireAt: 1 }])
      },
    },
    {
      title: 'deleteTimer leaves a timer that was armed anew, however close the times',
      weaknesses: [7],
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', {}, { timers: [arm('P', 0.3)] })
        await store.commit(held, { timers: [arm('P', 0.1 + 0.2)] })
        await store.deleteTimer(held.id, 'P', 0.3)
        assert.deepEqual(await timersOf(store, ns), [{ executionId: held.id, path: 'P', fireAt: 0.1 + 0.2 }])
      },
    },
    {
      title: 'deleting a timer that is not armed is no error',
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', {}, { timers: [arm('P', 1)] })
        await store.deleteTimer(id, 'Q', 1)
        await store.deleteTimer(`${ns}none`, 'P', 1)
        assert.equal((await timersOf(store, ns)).length, 1)
      },
    },
    {
      title: 'a page holds at most its limit, and pages that go on behind each other hold everything once',
      weaknesses: [27],
      async run({ store, ns }) {
        const names = ['c', 'a', 'b']
        for (const name of names) {
          // Ties of time within and across executions, over the border of a page.
          const ops = ['x', 'y', 'z', 'w'].map((path, n) => arm(path, n < 3 ? -3 : -2))
          await stored(store, ns, name, {}, { timers: ops })
        }
        const armed = await timersOf(store, ns)
        assert.equal(armed.length, 12)
        for (const limit of [1, 5, 12, 1000]) {
          const page = await store.dueTimers(0, { limit })
          assert(page.length <= limit, `a page of ${limit} holds ${page.length} timers`)
          const swept = (await all(timers(store, 0, limit))).filter(({ executionId }) => executionId.startsWith(ns))
          assert.deepEqual(swept, armed, `in pages of ${limit}`)
        }
      },
    },
    {
      title: 'a sweep that deletes as it goes skips nothing',
      async run({ store, ns }) {
        const ops = Array.from({ length: 12 }, (_, n) => arm(`P${n}`, n % 3))
        await stored(store, ns, 'e', {}, { timers: ops })
        let swept = 0
        for await (const { executionId, path, fireAt } of timers(store, 5, 5)) {
          if (!executionId.startsWith(ns)) continue
          assert(++swept <= 12, 'the sweep goes round in circles')
          await store.deleteTimer(executionId, path, fireAt)
        }
        assert.equal(swept, 12)
        assert.deepEqual(await timersOf(store, ns), [])
      },
    },
    {
      title: 'an execution can hold a hundred timers, armed in one commit, or the commit is refused before it is sent',
      weaknesses: [31],
      async run({ store, ns, capabilities }) {
        const held = execution(ns)
        const ops = Array.from({ length: 100 }, (_, n) => arm(`P${n}`, n))
        if (capabilities.maxCommitWrites <= 100) {
          await assert.rejects(store.commit(held, { timers: ops }), { code: 'COMMIT_TOO_LARGE' })
          assert.deepEqual(await timersOf(store, ns), [])
          return
        }
        await store.commit(held, { timers: ops })
        assert.equal((await timersOf(store, ns)).length, 100)
      },
    },
  ],
}

/** Timers: armed, re-armed, cancelled, found when due, deleted only at their time. */
export const assertTimers = assertionOf(timerContract)
