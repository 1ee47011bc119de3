/** Writes to a server in memory until it is killed. */
import { runWriter } from '@harel/store-testing/faults'
import { openRemote } from '../faults/memory-server.ts'

await runWriter(({ address = '', ...options }) => openRemote(address, options))
