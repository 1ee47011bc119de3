import { AsyncDictStore, DictStore } from '@harel/store-dict'
import { describeStore } from '@harel/store-testing'
import { describe, test } from 'vitest'

const capabilities = {
  durable: false,
  shared: false,
  identity: false,
  ordered: true,
  paging: 'offset',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: Number.POSITIVE_INFINITY,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
} as const

describeStore({ describe, test }, 'DictStore', {
  capabilities: { ...capabilities, identity: true },
  synchronous: true,
  open: ({ prefix: _unused, ...options }) => new DictStore(options),
})

describeStore({ describe, test }, 'DictStore with copies', {
  capabilities,
  synchronous: true,
  open: ({ prefix: _unused, ...options }) => new DictStore({ ...options, copy: true }),
})

describeStore({ describe, test }, 'AsyncDictStore', {
  capabilities: { ...capabilities, identity: true },
  open: ({ prefix: _unused, ...options }) => new AsyncDictStore(options),
})
