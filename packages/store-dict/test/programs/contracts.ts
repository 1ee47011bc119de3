import { describe, test } from 'node:test'
import { AsyncDictStore } from '@harel/store-dict'
import { describeStore } from '@harel/store-testing'

const { capabilities } = new AsyncDictStore({ copy: true })

describeStore({ describe, test }, 'AsyncDictStore with copies', {
  capabilities,
  open: ({ prefix: _unused, ...options }) => new AsyncDictStore({ ...options, copy: true }),
  model: { runs: 10 },
})
