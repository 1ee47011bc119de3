import { RqliteStore } from '@harel/store-rqlite'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onServer } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) => RqliteStore.connect(address, options)

export const rqlite = onServer('rqlite', {}, { open, speaks: 'http', program: import.meta.filename })

if (import.meta.main) await runWriter(open)
