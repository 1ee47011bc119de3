import { AsyncSqliteStore } from '@harel/store-sqlite'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onFile } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) => AsyncSqliteStore.open(address, options)

export const sqlite = onFile(open, import.meta.filename)

if (import.meta.main) await runWriter(open)
