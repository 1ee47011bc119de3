import { MongoStore } from '@harel/store-mongo'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onServer } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) => MongoStore.connect(address, options)

export const mongo = onServer('mongo', {}, { open, speaks: 'tcp', program: import.meta.filename })

if (import.meta.main) await runWriter(open)
