/** The module bundled as the text of one CommonJS script; see `sourceImport` of the build. */
declare module '*?source' {
  const text: string
  export default text
}
