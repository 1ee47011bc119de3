import { withServer } from '@harel-tooling/test-servers/vitest'
import { describeContracts } from './contract.js'

withServer('postgres', (server) => describeContracts(server, {}))
