import { build } from 'esbuild'

/**
 * `import text from './file.js?source'` gives the module as the text of one CommonJS script, for threads that are
 * started with `eval: true`: no file has to be found at run time, whatever bundler the package went through.
 * Packages stay imports only where they are loaded by `createRequire`.
 */
export const sourceImport = {
  name: 'source-import',
  setup({ onResolve, onLoad, initialOptions }) {
    onResolve({ filter: /\?source$/ }, ({ path, resolveDir }) => ({
      path: new URL(path.replace(/\.js\?source$/, '.ts'), `file://${resolveDir}/`).pathname,
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
        target: initialOptions.target,
        minifySyntax: true,
        minifyWhitespace: true,
      })
      return { contents: outputFiles[0].text, loader: 'text', watchFiles: Object.keys(metafile.inputs) }
    })
  },
}
