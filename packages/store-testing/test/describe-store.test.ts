import { AssertionError } from 'node:assert'
import { type ExecutionStore, StoreConflict } from '@harel/store-base'
import {
  assertCapabilities,
  assertModel,
  assertOutbox,
  contracts,
  describeStore,
  type StoreUnderTest,
} from '@harel/store-testing'
import { afterEach, expect, test, vi } from 'vitest'
import { titleOf } from '../src/contract.js'
import { capabilities, MemoryDatabase } from './memory-database.js'
import { mutants } from './mutants/index.js'
import { openMutant } from './mutants/mutant.js'

const CHECKS = contracts.flatMap(({ checks }) => checks).length

interface Registered {
  path: string
  body: () => Promise<void>
  skipped: boolean
}

/** What is registered with a runner that has a `skip` or has none. */
function register(under: StoreUnderTest, canSkip = true): Registered[] {
  const registered: Registered[] = []
  const path: string[] = []
  const add = (skipped: boolean) => (name: string, body: () => Promise<void>) => {
    registered.push({ path: [...path, name].join(' > '), body, skipped })
  }
  const runner = {
    describe(name: string, body: () => void) {
      path.push(name)
      body()
      path.pop()
    },
    test: canSkip ? Object.assign(add(false), { skip: add(true) }) : add(false),
  }
  describeStore(runner, 'store', under)
  return registered
}

const pick = (tests: readonly Registered[], title: string): Registered => {
  const found = tests.find(({ path }) => path.includes(title))
  if (found === undefined) throw new Error(`there is no test "${title}"`)
  return found
}

const mutant = (name: string) => {
  const found = mutants.find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`there is no mutant "${name}"`)
  return openMutant(found)
}

afterEach(() => vi.unstubAllEnvs())

test('every check is a test under both prefixes where handles share a database', () => {
  const { open, probes } = new MemoryDatabase()
  const tests = register({ capabilities, open, probes, prefixes: ['one', 'two'] })
  expect(tests.length).toBe(2 * CHECKS + 1)
  expect(new Set(tests.map(({ path }) => path)).size).toBe(tests.length)
  expect(tests.filter(({ path }) => path.includes('with the prefix two')).length).toBe(CHECKS + 1)
})

test('every check is a test once where each handle has a database of its own', () => {
  const { open } = new MemoryDatabase()
  expect(register({ capabilities: { ...capabilities, shared: false }, open }).length).toBe(CHECKS)
})

test('a title ends with the reports and the weaknesses that the check answers to', () => {
  const check = { title: 'it holds', run: async () => {} }
  expect(titleOf(check)).toBe('it holds')
  expect(titleOf({ ...check, reports: ['B01', 'B03'], weaknesses: [14] })).toBe('it holds (B01, B03, weakness 14)')
})

test('what is skipped says why, and passes where the runner cannot skip', async () => {
  const { open } = new MemoryDatabase()
  const title = 'a purge leaves no row (B96) [skipped: no probe that counts rows]'
  expect(pick(register({ capabilities, open }), title).skipped).toBe(true)
  const shown = pick(register({ capabilities, open }, false), title)
  expect(shown.skipped).toBe(false)
  await shown.body()
})

test('a test opens its own handles and closes all of them, whatever becomes of it', async () => {
  const { open, capabilities } = mutant('counts seqs handle by handle')
  const opened: ExecutionStore[] = []
  const closed = new Set<ExecutionStore>()
  const watch = (options: Parameters<typeof open>[0]) => {
    const store = open(options)
    const close = store.close.bind(store)
    const watched = new Proxy(store, {
      get: (target, key) => {
        if (key === 'close') return () => close().finally(() => closed.add(watched))
        const member: unknown = Reflect.get(target, key, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
    opened.push(watched)
    return watched
  }
  const tests = register({ capabilities, open: watch })
  await pick(tests, 'many handles opened at once on a database all work').body()
  expect(opened.length).toBe(5)
  await expect(pick(tests, 'no seq is given out twice').body()).rejects.toThrow(AssertionError)
  expect(closed).toEqual(new Set(opened))
})

test('a failure names the guarantee, shows what differs, and has the error as its cause', async () => {
  const { open, capabilities } = mutant('does not tell which version is stored')
  const failing = pick(register({ capabilities, open }), 'a stale copy conflicts')
  const error = await failing.body().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(AssertionError)
  const { message, actual, cause } = error as AssertionError
  expect(message).toMatch(/^commit: a stale copy conflicts and is told which version it held and which is stored: /)
  expect(actual).toMatchObject({ found: null })
  expect(cause).toBeInstanceOf(AssertionError)
})

test('an error of the store fails a check as well, and stays visible', async () => {
  const { open } = mutant('lets a first commit overwrite')
  const store = open({ prefix: 'harel' })
  store.pendingOutbox = () => Promise.reject(new StoreConflict('e', 1, 2))
  const error = await assertOutbox(store).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(AssertionError)
  expect((error as AssertionError).cause).toBeInstanceOf(StoreConflict)
})

test('a contract run by hand tells what it has skipped and why', async () => {
  const store = new MemoryDatabase().open({ prefix: 'harel' })
  expect(await assertCapabilities(store, { ns: 'by-hand-' })).toEqual([
    {
      title: 'what changes in an object that is shared with the store shows in it',
      reason: 'load returns copies',
    },
    {
      title: 'two handles see one database if and only if it is promised to be shared',
      reason: 'there is no way to open another handle',
    },
  ])
  expect(await store.idsWithPrefix('by-hand-')).toEqual([])
})

test('every contract can be run by hand, on one store after another and on one database', async () => {
  const { open, probes } = new MemoryDatabase()
  const functions = Object.entries(await import('@harel/store-testing')).filter(([name]) => name.startsWith('assert'))
  expect(functions.length).toBe(contracts.length)
  for (const [name, run] of functions as [string, typeof assertOutbox][]) {
    const options = { prefix: 'harel', traceMax: 4 }
    const model = { runs: 2 }
    await using store = open(options)
    const given = { traceMax: 4, ns: `${name}-`, probes: probes('harel'), model }
    const skipped = await run(store, { ...given, open: async (more) => open({ prefix: 'harel', ...more }) })
    expect(
      skipped.map(({ reason }) => reason).filter((reason) => reason !== 'load returns copies'),
      name,
    ).toEqual([])
  }
})

test('the last test finds what the second prefix has done to the first', async () => {
  const honest = new MemoryDatabase()
  const title = 'all this has changed nothing under the prefix harel'
  await pick(register({ capabilities, open: honest.open, probes: honest.probes }), title).body()

  const { open, capabilities: said } = mutant('acknowledges under every prefix')
  const tests = register({ capabilities: said, open, model: { runs: 1 } })
  // The handle under the first prefix is known to the store once the first test has run.
  for (const { path, body } of tests.filter(({ path }) => path.includes('harel2 > outbox'))) {
    await body().catch((error: unknown) => expect(error, path).toBeInstanceOf(AssertionError))
  }
  await expect(pick(tests, title).body()).rejects.toThrow()
})

test('what has led to a failure stands in its message', async () => {
  const store = new MemoryDatabase().open({ prefix: 'harel' })
  store.pendingOutbox = async () => {
    throw new Error('refused', { cause: new Error('the disk is full') })
  }
  await expect(assertOutbox(store)).rejects.toThrow('the disk is full')
})

test('a sequence that disagrees with the model names its seed, which repeats it', async () => {
  const message = async () => {
    const store = mutant('queues in reverse order').open({ prefix: 'harel' })
    const error = await assertModel(store).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AssertionError)
    return (error as AssertionError).message
  }
  const first = await message()
  const [, seed = ''] = /HAREL_TEST_SEED=(-?\d+) repeats this/.exec(first) ?? []
  vi.stubEnv('HAREL_TEST_SEED', seed)
  expect(await message()).toContain(`HAREL_TEST_SEED=${seed} repeats this`)
})

test('an honest store agrees with the model for as long as it may', async () => {
  const store = new MemoryDatabase().open({ prefix: 'harel' })
  const begun = performance.now()
  await assertModel(store, { model: { runs: 1_000_000, milliseconds: 100 } })
  expect(performance.now() - begun).toBeGreaterThan(90)
})

test('who says how many runs there are to be gets them all, however long they take', async () => {
  const store = mutant('queues in reverse order').open({ prefix: 'harel' })
  await assertModel(store, { model: { milliseconds: 0 } })
  vi.stubEnv('HAREL_TEST_RUNS', '20')
  await expect(assertModel(store, { model: { milliseconds: 0 } })).rejects.toThrow('HAREL_TEST_SEED')
})
