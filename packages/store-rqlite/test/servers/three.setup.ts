import { serverSetup } from '@harel-tooling/test-servers'

export default serverSetup('rqlite', { nodes: 3 })
