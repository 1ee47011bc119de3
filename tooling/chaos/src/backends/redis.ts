import { RedisStore } from '@harel/store-redis'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onServer } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) => RedisStore.connect(address, options)

// With less, a server that is killed may lose what it has acknowledged.
const config = { appendonly: 'yes', appendfsync: 'always' }

export const redis = onServer('redis', { config }, { open, speaks: 'tcp', program: import.meta.filename })

if (import.meta.main) await runWriter(open)
