import type { StoreCapabilities } from '@harel/store-base'
import { describeStore } from '@harel/store-testing'

const capabilities: StoreCapabilities = {
  durable: false,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: 100,
  maxExecutionBytes: 1_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}
const titles: string[] = []
const runner = {
  describe: (_name: string, body: () => void) => body(),
  test: (title: string) => titles.push(title),
}

describeStore(runner, 'store', { capabilities, open: () => Promise.reject(new Error('only registered, never run')) })
if (titles.length === 0) throw new Error('no contract was registered')
