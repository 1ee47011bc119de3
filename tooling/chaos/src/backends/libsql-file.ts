import { LibsqlStore } from '@harel/store-libsql'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onFile } from '../backend.ts'

const open: OpenForFaults = ({ address, ...options }) => LibsqlStore.connect({ url: `file:${address}` }, options)

export const libsqlFile = onFile(open, import.meta.filename)

if (import.meta.main) await runWriter(open)
