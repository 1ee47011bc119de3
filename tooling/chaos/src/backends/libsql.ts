import { LibsqlStore } from '@harel/store-libsql'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onServer } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) => LibsqlStore.connect({ url: address }, options)

export const libsql = onServer('libsql', {}, { open, speaks: 'http', program: import.meta.filename })

if (import.meta.main) await runWriter(open)
