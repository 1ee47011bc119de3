/** What machines invoke that is no machine, and what they can see of each other. */
import { expect, test } from 'vitest'
import { assign, fromCallback, setup } from 'xstate'
import { contextOf, openStore, runnerOn, until } from './helpers.js'

type Any = { type: string; [key: string]: unknown }
const anyEvent = { types: { events: {} as Any } }

/** Keeps what it gets. */
const got = assign<{ got: unknown[] }, Any, undefined, Any, never>({
  got: ({ context, event }) => {
    const { snapshot, error, output, n } = event as { snapshot?: { context?: unknown }; [key: string]: unknown }
    return [...context.got, snapshot?.context ?? (error as Error | undefined)?.message ?? output ?? n ?? null]
  },
})
const types = { ...anyEvent.types, context: {} as { got: unknown[] } }

const gotBy = async (store: Parameters<typeof contextOf>[0], id: string) =>
  ((await contextOf(store, id)) as { got: unknown[] }).got

test('what a callback says after its runner was closed and another has taken it up is heard like what it said before', async () => {
  let say = (_n: number): void => {}
  let runs = 0
  const mouth = fromCallback(({ sendBack }) => {
    runs += 1
    say = (n) => sendBack({ type: 'SAID', n })
  })
  const machine = setup({ types, actors: { mouth } }).createMachine({
    id: 'ear',
    context: { got: [] },
    invoke: { src: 'mouth' },
    on: { SAID: { actions: got } },
  })
  const store = await openStore()
  for (let run = 1; run <= 3; run++) {
    await using runner = runnerOn(store, { machines: [machine], grace: 0.1, maxPause: 0.1 })
    const abort = new AbortController()
    const running = runner.run({ signal: abort.signal })
    if (run === 1) await runner.create('ear', { id: 'e' })
    await until(() => runs === run)
    say(run)
    await until(async () => (await gotBy(store, 'e')).length === run)
    abort.abort()
    await running
  }
  expect(await gotBy(store, 'e')).toEqual([1, 2, 3])
})
