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

/** Whether it is what an object literal makes, in this realm or in another, or has no prototype at all. */
export function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.hasOwn(prototype, 'isPrototypeOf')
}

/** Of what class the object is; not asked of a plain one, whose `constructor` may be content. */
export function classOf(value: object): string {
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' ? `an object of class ${name.slice(0, SHOWN)}` : 'no plain object'
}

function describeObject(value: object): string {
  try {
    if (Array.isArray(value)) return `an array of ${value.length}`
    return isPlain(value) ? 'an object' : classOf(value)
  } catch {
    return 'an object that cannot be read'
  }
}

/** A short description of a bad value that shows no content of objects. Never throws, whatever a proxy does. */
export function describe(value: unknown): string {
  if (typeof value === 'string')
    return value.length > SHOWN ? `${quote(value)} (${value.length} characters)` : quote(value)
  if (value === null) return 'null'
  if (typeof value === 'object') return describeObject(value)
  if (typeof value === 'function') return 'a function'
  return typeof value === 'bigint' ? 'a bigint' : String(value)
}
