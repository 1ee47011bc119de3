import { defineConfig } from 'tsup'

export { sourceImport } from './source-import.mjs'

/** The build of every published package: ESM and CommonJS, with types for both. */
export const library = (options = {}) =>
  defineConfig({
    entry: ['src/index.ts'],
    format: ['esm', 'cjs'],
    dts: true,
    clean: true,
    sourcemap: true,
    target: 'es2023',
    platform: 'node',
    treeshake: true,
    ...options,
  })
