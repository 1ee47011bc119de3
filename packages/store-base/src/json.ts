import { bracketed, classOf, isPlain } from './describe.js'
import { NotSerializable } from './errors.js'
import type { Numbers } from './numbers.js'
import type { JsonValue } from './records.js'

/** How deep Python nests in one stored text, the outermost container included: deeper texts cannot be read back. */
export const MAX_NESTING = 200

const THROWS = 'throws when it is read'
const TOO_DEEP = `lies deeper than ${MAX_NESTING} levels in the stored text`

/** Reports something about a value at a path below it. */
interface Problem {
  reason: string
  /** From the inside out. */
  path: (string | number)[]
  cause?: unknown
}

const problem = (reason: string, cause?: unknown): Problem => ({ reason, path: [], cause })

function find(value: unknown, depth: number, numbers: Numbers): Problem | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) || numbers === 'lossy'
        ? undefined
        : problem(`is ${value}, which JSON has no text for`)
    case 'object':
      break
    case 'undefined':
      return problem('is undefined, which JSON has no text for')
    default:
      return problem(`is a ${typeof value}, which JSON has no text for`)
  }
  if (value === null) return undefined
  if (depth === 0) return problem(TOO_DEEP)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = find(value[index], depth - 1, numbers)
      if (found !== undefined) return at(found, index)
    }
    return 'toJSON' in value ? problem('is an array with toJSON, which says something else than its items') : undefined
  }
  if (!isPlain(value)) {
    return problem(`is ${classOf(value)}, which would not come back as one; store plain data instead`)
  }
  if (Object.getOwnPropertySymbols(value).length > 0) return problem('has a member keyed by a symbol, which JSON drops')
  const members: unknown[] = Object.values(value)
  for (let index = 0; index < members.length; index++) {
    if (members[index] === undefined) continue
    const found = find(members[index], depth - 1, numbers)
    // The keys are asked for only now because that is what takes time.
    if (found !== undefined) return at(found, Object.keys(value)[index] ?? '')
  }
  return undefined
}

/** The first container or member that throws when it is read: a getter, or a proxy. */
function findThrowing(value: unknown, depth: number, seen = new Set<object>()): Problem | undefined {
  if (typeof value !== 'object' || value === null || depth === 0 || seen.has(value)) return undefined
  seen.add(value)
  const path: (string | number)[] = []
  try {
    const isArray = Array.isArray(value)
    for (const key of Object.keys(value)) {
      path[0] = isArray ? Number(key) : key
      const found = findThrowing((value as Record<string, unknown>)[key], depth - 1, seen)
      if (found !== undefined) return at(found, path[0])
    }
  } catch (cause) {
    return { reason: THROWS, path, cause }
  }
  return undefined
}

/** Where a value throws when it is read, and what; undefined if it does so no more. */
export function throwingPlace(value: unknown, name: string): { path: string; cause: unknown } | undefined {
  const found = findThrowing(value, MAX_NESTING)
  return found && { path: pathText(name, found.path), cause: found.cause }
}

const at = (found: Problem, key: string | number): Problem => {
  found.path.push(key)
  return found
}

function survey(value: unknown, depth: number, numbers: Numbers): Problem | undefined {
  try {
    return find(value, depth, numbers)
  } catch (cause) {
    return findThrowing(value, depth) ?? problem(THROWS, cause)
  }
}

/** How far down the path, from the inside out, the first container stands that is one of those around it. */
function cycle(value: unknown, insideOut: readonly (string | number)[]): number | undefined {
  const around = new Set([value])
  let inner = value
  for (const [steps, key] of insideOut.toReversed().entries()) {
    inner = (inner as Record<string | number, unknown>)[key]
    if (around.has(inner)) return steps + 1
    around.add(inner)
  }
  return undefined
}

const identifier = /^[A-Za-z_$][\w$]*$/

const pathText = (root: string, insideOut: readonly (string | number)[]): string => {
  let text = root
  for (const key of insideOut.toReversed()) {
    if (typeof key === 'number') text += `[${key}]`
    else text += identifier.test(key) ? `.${key}` : bracketed(key)
    if (text.length > 300) return `${text.slice(0, 300)}…`
  }
  return text
}

/**
 * Refuses what JSON does not carry exactly, with the path to it: NaN, Infinity, bigint, function, symbol, `undefined`
 * in an array, any object that is neither plain nor an array (Map, Date, class instances), members keyed by a symbol,
 * what throws when it is read (a getter, a revoked proxy), and nesting too deep to be read back (in a context beyond 199
 * levels), which cyclic values are. Members that are `undefined` are dropped by JSON, and -0 becomes 0. Lone surrogates
 * are refused by `toJson`.
 *
 * @param name how messages call the value
 * @param options `enclosing`: how many containers the value will stand in; `numbers`: `lossy` lets NaN and Infinity
 *   pass, which become null
 */
export function validateSerializable(
  value: unknown,
  name: string,
  options: { enclosing?: number; numbers?: Numbers } = {},
): asserts value is JsonValue {
  const found = survey(value, MAX_NESTING - (options.enclosing ?? 1), options.numbers ?? 'exact')
  if (found === undefined) return
  const { path, reason, cause } = found
  const steps = reason === TOO_DEEP ? cycle(value, path) : undefined
  if (steps !== undefined) throw new NotSerializable(pathText(name, path.slice(-steps)), 'contains itself')
  throw new NotSerializable(pathText(name, path), reason, cause)
}

/**
 * The JSON text of a value that `validateSerializable` has passed.
 *
 * A lone surrogate is refused: JSON can escape it, but neither Python nor most databases can read it back.
 */
export function toJson(value: unknown, name: string): string {
  const text = JSON.stringify(value)
  if (hasLoneSurrogate(text)) throw new NotSerializable(surrogatePath(value, name), 'has a lone surrogate')
  return text
}

const surrogate = /\\u[dD][89a-fA-F]/
const escapedSurrogate =
  /\\(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u[dD][c-fC-F][0-9a-fA-F]{2}|.)/gs

/** Whether a JSON text holds half of a surrogate pair, escaped. Unescaped halves cannot stand in UTF-8. */
export function hasLoneSurrogate(text: string): boolean {
  if (!text.includes('\\ud') && !text.includes('\\uD')) return false
  for (const [sequence] of text.matchAll(escapedSurrogate)) {
    if (sequence.length === 6 && surrogate.test(sequence)) return true
  }
  return false
}

function surrogatePath(value: unknown, name: string): string {
  const search = (inner: unknown): Problem | undefined => {
    if (typeof inner === 'string') return inner.isWellFormed() ? undefined : problem('')
    if (typeof inner !== 'object' || inner === null) return undefined
    for (const [key, member] of Object.entries(inner)) {
      if (!key.isWellFormed()) return at(problem(''), key.toWellFormed())
      const found = search(member)
      if (found !== undefined) return at(found, Array.isArray(inner) ? Number(key) : key)
    }
    return undefined
  }
  return pathText(name, search(value)?.path ?? [])
}

/** A parsed text and what is to be known about it. */
export interface Parsed {
  value: unknown
  /** The first number in the text that a JavaScript number does not hold exactly. */
  lossy: string | undefined
  /** Whether containers are nested deeper than `MAX_NESTING`. */
  deep: boolean
}

/**
 * Parses JSON as Python does: bare `NaN`, `Infinity` and `-Infinity` are numbers. Throws `SyntaxError`.
 *
 * Python's integers have no bounds. One beyond 2^53 that would be written back as another number, or a number that
 * is not finite, is named in `lossy`.
 */
export function parseJson(text: string): Parsed {
  const value = parse(text)
  const survey = { large: false, deep: false }
  look(value, MAX_NESTING, survey)
  // The text is searched only if need be: it takes longer than parsing.
  return { value, lossy: survey.large || survey.deep ? firstLossy(text) : undefined, deep: survey.deep }
}

/** Looks for numbers so large that they may have been rounded in parsing, and for containers too deep to be searched. */
function look(value: unknown, depth: number, survey: { large: boolean; deep: boolean }): void {
  if (typeof value === 'number') {
    if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) survey.large = true
  } else if (typeof value === 'object' && value !== null) {
    if (depth === 0) survey.deep = true
    else if (Array.isArray(value)) for (let i = 0; i < value.length; i++) look(value[i], depth - 1, survey)
    else for (const key in value) look((value as Record<string, unknown>)[key], depth - 1, survey)
  }
}

const numbersAndStrings = /"(?:[^"\\]|\\.)*"|NaN|-?Infinity|-?\d[\d.eE+-]*/gs

const isBare = (token: string): boolean => token.endsWith('N') || token.endsWith('y')

function firstLossy(text: string): string | undefined {
  for (const [token] of text.matchAll(numbersAndStrings)) {
    if (!token.startsWith('"') && !survives(token)) return token.slice(0, 60)
  }
  return undefined
}

const survives = (token: string): boolean => {
  const number = Number(token)
  if (!Number.isFinite(number)) return false
  return !/^-?\d+$/.test(token) || Number.isSafeInteger(number) || String(number) === token
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (text.includes('NaN') || text.includes('Infinity')) return parseBare(text)
    throw error
  }
}

function parseBare(text: string): unknown {
  const mark = `\u0000${crypto.randomUUID()}:`
  const quoted = text.replace(numbersAndStrings, (token) => (isBare(token) ? JSON.stringify(mark + token) : token))
  return JSON.parse(quoted, (key, value: unknown) => {
    if (key.startsWith(mark)) throw new SyntaxError('a number is no key')
    return typeof value === 'string' && value.startsWith(mark) ? Number(value.slice(mark.length)) : value
  })
}
