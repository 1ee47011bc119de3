import { library } from '@harel-tooling/build'

export default library()
