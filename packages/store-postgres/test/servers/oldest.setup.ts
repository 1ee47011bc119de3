import { serverSetup } from '@harel-tooling/test-servers'

export default serverSetup('postgres', { flavour: '15' })
