import assert from 'node:assert/strict'
import {
  type CommitChanges,
  type Execution,
  type ExecutionStore,
  type JsonObject,
  NotSerializable,
} from '@harel/store-base'
import type { CheckContext } from './contract.js'
import { event, execution, outboxOf, rejection, spawnsOf, stateOf } from './fixtures.js'

/** A place in which a caller's value is stored, and from which it is read back. */
interface Place {
  /** How many containers stand around the object in the text that it becomes a part of. */
  readonly enclosing: number
  write(store: ExecutionStore, ns: string, value: JsonObject): Promise<unknown>
  read(store: ExecutionStore, ns: string): Promise<unknown>
}

const commit = (store: ExecutionStore, ns: string, fields: Partial<Execution>, changes?: CommitChanges) =>
  store.commit(execution(ns, 'e', fields), changes)

/** Where values of users go: those of an execution, which some stores share with the caller, and all others. */
const inExecution: Record<string, Place> = {
  context: {
    enclosing: 1,
    write: (store, ns, context) => commit(store, ns, { context }),
    read: async (store, ns) => (await store.load(`${ns}e`))?.context,
  },
  history: {
    enclosing: 1,
    write: (store, ns, history) => commit(store, ns, { history }),
    read: async (store, ns) => (await store.load(`${ns}e`))?.history,
  },
  'deferred event': {
    enclosing: 3,
    write: (store, ns, data) => commit(store, ns, { deferred: [event(ns, 'later', data)] }),
    read: async (store, ns) => (await store.load(`${ns}e`))?.deferred[0]?.data,
  },
  'result of a child': {
    enclosing: 3,
    write: (store, ns, result) => {
      const child = { rootPath: '', finished: true, outcome: null, result, submachine: false, key: '' }
      return commit(store, ns, { children: { [`${ns}c`]: child } })
    },
    read: async (store, ns) => (await store.load(`${ns}e`))?.children[`${ns}c`]?.result,
  },
}

const beside: Record<string, Place> = {
  event: {
    enclosing: 1,
    write: (store, ns, data) => commit(store, ns, {}, { emits: [{ targetId: null, event: event(ns, 'ev', data) }] }),
    read: async (store, ns) => (await outboxOf(store, ns))[0]?.event.data,
  },
  'spawned context': {
    enclosing: 1,
    write: (store, ns, context) => commit(store, ns, {}, { spawns: [{ childId: `${ns}c`, rootPath: '', context }] }),
    read: async (store, ns) => (await spawnsOf(store, ns))[0]?.context,
  },
  'trace step': {
    enclosing: 1,
    write: (store, ns, trace) => commit(store, ns, {}, { trace: { ...trace } }),
    read: async (store, ns) => {
      const { index: _index, ...step } = (await store.readTrace(`${ns}e`))[0] ?? {}
      return step
    },
  },
  'appended step': {
    enclosing: 1,
    write: (store, ns, step) => store.appendTrace(`${ns}e`, step),
    read: async (store, ns) => {
      const { index: _index, ...step } = (await store.readTrace(`${ns}e`))[0] ?? {}
      return step
    },
  },
  definition: {
    enclosing: 1,
    write: (store, ns, definition) => store.publishDefinition({ id: `${ns}D`, version: '1', definition }),
    read: async (store, ns) => (await store.loadDefinition(`${ns}D`, '1'))?.definition,
  },
}

export const places: Record<string, Place> = { ...inExecution, ...beside }

/** The places from which a copy is read: not the caller's own object. */
const copyingPlaces = ({ capabilities }: CheckContext): Record<string, Place> =>
  capabilities.identity ? beside : places

/** Asserts that a value comes back from every place as `expected`. */
export async function assertStoredAs(context: CheckContext, value: unknown, expected: unknown, what: string) {
  for (const [name, place] of Object.entries(copyingPlaces(context))) {
    const ns = `${context.ns}${what}/${name}/`
    await place.write(context.store, ns, value as JsonObject)
    assert.deepEqual(await place.read(context.store, ns), expected, `${what} in ${name}`)
  }
}

/** Asserts that every place refuses a value, that the error says where it stands, and that nothing is written. */
export async function assertRefused(context: CheckContext, value: unknown, path: string, what: string) {
  const ns = `${context.ns}${what}/`
  const before = await stateOf({ ...context, ns }, [`${ns}e`])
  for (const [name, place] of Object.entries(places)) {
    const error = await rejection(
      () => place.write(context.store, ns, value as JsonObject),
      NotSerializable,
      `${what} in ${name}`,
    )
    assert(error.path.endsWith(path), `${what} in ${name}: the path is ${error.path}`)
  }
  assert.deepEqual(await stateOf({ ...context, ns }, [`${ns}e`]), before)
  assert.equal(await context.store.loadDefinition(`${ns}D`, '1'), undefined)
}
