import type { Options } from 'tsup'

/** The build of every published package: ESM and CommonJS, with types for both. */
export declare const library: (options?: Options) => Options
