import { withServer } from '@harel-tooling/test-servers/vitest'
import { describeContracts } from '../contract.js'

// A statement that was prepared meets another session of the server behind the pool.
withServer('postgres', (server) => describeContracts(server, { prepare: false }))
