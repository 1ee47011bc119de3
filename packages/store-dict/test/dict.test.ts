import { InvalidArgument, newExecution, StoreClosed, StoreConflict } from '@harel/store-base'
import { AsyncDictStore, DictStore } from '@harel/store-dict'
import { expect, test } from 'vitest'

const execution = () => newExecution({ id: 'e', definitionId: 'd' })

test('a DictStore answers at once and throws', () => {
  const store = new DictStore()
  const held = execution()
  expect(store.commit(held)).toEqual([])
  expect(store.load('e')).toBe(held)
  expect(() => store.commit(execution())).toThrow(StoreConflict)
  expect(() => store.load('')).toThrow(InvalidArgument)
})

test('a DictStore with copies shares nothing with its callers (B25)', () => {
  const store = new DictStore({ copy: true })
  const held = execution()
  store.commit(held)
  held.context = { changed: true }
  expect(store.load('e')?.context).toEqual({})
  expect(store.load('e')).not.toBe(store.load('e'))
})

test('leaving the scope of `using` closes a DictStore', () => {
  const store = new DictStore()
  {
    using scoped = store
    scoped.commit(execution())
  }
  expect(() => store.load('e')).toThrow(StoreClosed)
})

test.each([-1, 1.5, Number.NaN, '3', null])('%s is no limit of a trace', (traceMax) => {
  expect(() => new DictStore({ traceMax: traceMax as number })).toThrow(InvalidArgument)
  expect(() => new AsyncDictStore({ traceMax: traceMax as number })).toThrow(/traceMax/)
})

test('listings show what was committed, not what a shared object holds by now', () => {
  const store = new DictStore()
  const held = execution()
  store.commit(held)
  held.status = 'DONE'
  expect(store.listExecutions().items[0]?.status).toBe('PENDING')
})

test('two stores have nothing in common', () => {
  new DictStore().commit(execution())
  expect(new DictStore().load('e')).toBeUndefined()
})
