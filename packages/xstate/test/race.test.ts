/** Two processes at one timer in the same moment. */
import { setTimeout as sleep } from 'node:timers/promises'
import { asyncStore, type ExecutionStore } from '@harel/store-base'
import { DictStore } from '@harel/store-dict'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import { currentEffect, execution } from '@harel/xstate'
import { expect, onTestFinished, test } from 'vitest'
import { assign, sendTo, setup } from 'xstate'
import { contextOf, freshFile, keepRunning, runnerOn, stored, until, withMethods } from './helpers.js'

const ROUNDS = 20
const IDS = Array.from({ length: 12 }, (_, n) => `t${n}`)

/** The stores of two processes that share what they keep. */
const pairs: readonly [string, () => Promise<readonly [ExecutionStore, ExecutionStore]>][] = [
  [
    'DictStore',
    async () => {
      const store = asyncStore(new DictStore({ copy: true }))
      return [store, store]
    },
  ],
  [
    'SqliteStore',
    async () => {
      const file = freshFile()
      return [asyncStore(SqliteStore.open(file)), asyncStore(SqliteStore.open(file))]
    },
  ],
  [
    'AsyncSqliteStore',
    async () => {
      const file = freshFile()
      return [await AsyncSqliteStore.open(file), await AsyncSqliteStore.open(file)]
    },
  ],
]

test.each(pairs)(
  'a timer that its own process fires while a sweep of another finds it due fires once, on %s',
  async (_, open) => {
    const [own, others] = await open()
    onTestFinished(async () => {
      await own.close()
      await others.close()
    })
    const calls: string[] = []
    const timed = setup({
      types: { context: {} as { n: number }, events: {} as { type: 'ARM' } },
      actions: { act: () => void calls.push(currentEffect().idempotencyKey) },
    }).createMachine({
      id: 'timed',
      context: { n: 0 },
      initial: 'idle',
      states: {
        idle: { on: { ARM: 'armed' } },
        armed: {
          after: {
            150: {
              target: 'idle',
              actions: [
                assign({ n: ({ context }) => context.n + 1 }),
                'act',
                sendTo(() => execution('counter'), { type: 'FIRED' }),
              ],
            },
          },
        },
      },
    })
    const counter = setup({ types: { context: {} as { n: number }, events: {} as { type: 'FIRED' } } }).createMachine({
      id: 'counter',
      context: { n: 0 },
      on: { FIRED: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
    })

    /** The first loads of a timer's execution in each round, of the one process and of the other, end at the same moment. */
    let meetings = new Map<string, { met: PromiseWithResolvers<void>; here: Set<string> }>()
    let met = 0
    const meeting = (name: string, store: ExecutionStore): ExecutionStore =>
      withMethods(store, {
        load: async (id) => {
          const loaded = await store.load(id)
          const at = meetings.get(id)
          if (at === undefined || at.here.has(name)) return loaded
          at.here.add(name)
          if (at.here.size === 2) {
            met += 1
            at.met.resolve()
          }
          await Promise.race([at.met.promise, sleep(1000)])
          return loaded
        },
      })

    const numberOf = async (id: string) => ((await contextOf(own, id)) as { n: number }).n
    const machines = [timed, counter] as const
    const owner = runnerOn(meeting('owner', own), { machines, grace: 60 })
    // Its clock is ahead, so that its sweeps find due what its owner is about to fire.
    let ahead = 5
    const other = runnerOn(meeting('other', others), { machines, grace: 8, clock: () => Date.now() / 1000 + ahead })
    await owner.create('counter', { id: 'counter' })
    for (const id of IDS) await owner.create('timed', { id })
    keepRunning(owner)
    for (let round = 1; round <= ROUNDS; round++) {
      meetings = new Map()
      for (const id of IDS) await owner.send(id, { type: 'ARM' })
      meetings = new Map(IDS.map((id) => [id, { met: Promise.withResolvers<void>(), here: new Set() }]))
      ahead += 0.5
      await other.sweep()
      await until(async () => (await Promise.all(IDS.map(numberOf))).every((n) => n === round))
    }
    await until(async () => (await numberOf('counter')) >= ROUNDS * IDS.length)
    await owner.settled()
    await other.settled()
    // Each time it was armed in one commit and has fired in one.
    for (const id of IDS) expect(await stored(own, id)).toMatchObject({ version: 1 + 2 * ROUNDS, activePath: 'idle' })
    expect(await numberOf('counter')).toBe(ROUNDS * IDS.length)
    expect(new Set(calls).size).toBe(ROUNDS * IDS.length)
    expect(await own.dueTimers(1e18)).toEqual([])
    expect([owner.warnings, other.warnings]).toEqual([[], []])
    // Where they have met, both have run the action, under one key.
    expect(met).toBeGreaterThan(ROUNDS)
    expect(calls.length).toBeGreaterThan(ROUNDS * IDS.length)
  },
)
