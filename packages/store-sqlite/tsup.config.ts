import { library, sourceImport } from '@harel-tooling/build'

export default library({ shims: true, esbuildPlugins: [sourceImport] })
