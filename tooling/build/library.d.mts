import type { Options } from 'tsup'

/** The build of every published package: ESM and CommonJS, with types for both. */
export declare const library: (options?: Options) => Options

/** Resolves `import text from './file.js?source'`: the module, bundled, as the text of one CommonJS script. */
export declare const sourceImport: NonNullable<Options['esbuildPlugins']>[number]
