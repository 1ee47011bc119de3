import { library } from '@harel-tooling/build'

export default library({ entry: ['src/index.ts', 'src/sql.ts'] })
