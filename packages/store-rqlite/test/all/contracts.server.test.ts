import { withServer } from '@harel-tooling/test-servers/vitest'
import { describeContracts } from '../contracts.js'

withServer('rqlite', describeContracts)
