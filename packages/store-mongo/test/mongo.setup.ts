import { serverSetup } from '@harel-tooling/test-servers'

export default serverSetup('mongo')
