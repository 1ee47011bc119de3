import { PostgresStore } from '@harel/store-postgres'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onServer } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) => PostgresStore.connect(address, options)

export const postgres = onServer('postgres', {}, { open, speaks: 'tcp', program: import.meta.filename })

if (import.meta.main) await runWriter(open)
