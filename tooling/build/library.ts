import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { defineConfig, type Options } from 'tsup'

/** The build of every published package: ESM and CommonJS, with types for both. */
export const library = (options: Options = {}) =>
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

/**
 * `import text from './file.js?source'` gives the module as the text of one CommonJS script, for threads that are
 * started with `eval: true`: no file has to be found at run time, whatever bundler the package went through.
 * Packages stay imports only where they are loaded by `createRequire`.
 */
export const sourceImport: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'source-import',
  setup({ onResolve, onLoad, initialOptions: { target } }) {
    onResolve({ filter: /\?source$/ }, ({ path, resolveDir }) => ({
      path: fileURLToPath(new URL(path.replace(/\.js\?source$/, '.ts'), pathToFileURL(`${resolveDir}/`))),
      namespace: 'source',
    }))
    onLoad({ filter: /.*/, namespace: 'source' }, async ({ path }) => {
      const { outputFiles, metafile } = await build({
        entryPoints: [path],
        bundle: true,
        write: false,
        metafile: true,
        format: 'cjs',
        platform: 'node',
        ...(target === undefined ? {} : { target }),
        minifySyntax: true,
        minifyWhitespace: true,
      })
      const contents = outputFiles.map(({ text }) => text).join('')
      return { contents, loader: 'text', watchFiles: Object.keys(metafile.inputs) }
    })
  },
}
