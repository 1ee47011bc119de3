import { library } from '@harel-tooling/build'

export default library({ entry: { index: 'src/index.ts', faults: 'src/faults/index.ts' } })
