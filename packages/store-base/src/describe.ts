const SHOWN = 60

/** A text as messages show it: shortened, and without the secrets of a URL. */
export function quote(text: string): string {
  const shown = text.replace(/:\/\/[^/\s]*@/g, '://…@').replace(/(token|password|secret)=[^&\s]*/gi, '$1=…')
  return JSON.stringify(shown.length > SHOWN ? `${shown.slice(0, SHOWN)}…` : shown)
}

/** A key in brackets, as messages show the path to a member. */
export const bracketed = (key: string): string => `[${JSON.stringify(key.slice(0, SHOWN))}]`

/** What kind of value it is, where it may be a payload: nothing of a text is shown. */
export const kindOf = (value: unknown): string =>
  typeof value === 'string' ? `a string of ${value.length} characters` : describe(value)

/** A short description of a bad value that shows no content of objects. */
export function describe(value: unknown): string {
  if (typeof value === 'string')
    return value.length > SHOWN ? `${quote(value)} (${value.length} characters)` : quote(value)
  if (value === null) return 'null'
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'bigint' ? 'a bigint' : String(value)
}
