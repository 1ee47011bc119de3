/**
 * JSON texts as the BSON that Python harel reads (contexts of spawns, steps of a trace), and back.
 */
import type { JsonObject, JsonValue } from '@harel/store-base'
import { Double, Int32, Long } from 'mongodb'

/** A `Map` keeps members that the driver takes for its own: `_bsontype`, `__proto__`. */
export type BsonValue = null | boolean | string | Int32 | Long | Double | BsonValue[] | Map<string, BsonValue>

/** A document, in which the text stands that BSON cannot hold. */
const TEXT = 'json_text'

const INT32 = 2 ** 31

/**
 * How deep containers may be nested in a value that stands in an entry of an array of a document: MongoDB promises 100
 * levels (https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-Nested-Depth-for-BSON-Documents).
 */
const MAX_DEPTH = 96

/** The number that Python would have written: an integer as such, anything else as a double. */
export function toNumber(value: number): Int32 | Long | Double {
  if (!Number.isSafeInteger(value)) return new Double(value)
  return value >= -INT32 && value < INT32 ? new Int32(value) : Long.fromNumber(value)
}

/** The document of a JSON object; where BSON cannot hold it, one with its text, so that nothing is lost or refused. */
export function toDocument(text: string): Map<string, BsonValue> {
  const object = JSON.parse(text) as JsonObject
  return isHeld(object, MAX_DEPTH) && !Object.hasOwn(object, TEXT) ? toMap(object) : new Map([[TEXT, text]])
}

/** BSON has no keys with U+0000 and takes only so many levels; and drivers make a reference of what looks like one. */
function isHeld(value: JsonValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth === 0) return false
  if (Array.isArray(value)) return value.every((item) => isHeld(item, depth - 1))
  if (Object.hasOwn(value, '$ref') && Object.hasOwn(value, '$id')) return false
  return Object.entries(value).every(([key, member]) => !key.includes('\0') && isHeld(member, depth - 1))
}

const toMap = (object: JsonObject): Map<string, BsonValue> =>
  new Map(Object.entries(object).map(([key, member]) => [key, toBson(member)]))

function toBson(value: JsonValue): BsonValue {
  if (typeof value === 'number') return toNumber(value)
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? value.map(toBson) : toMap(value)
}

/** The JSON text of a document. */
export function toText(document: object): string {
  const text: unknown = Reflect.get(document, TEXT)
  return typeof text === 'string' ? text : textOf(document)
}

/**
 * Integers keep every digit, and numbers that are not finite are written as Python does, so that whoever reads the text can
 * tell what JavaScript does not hold.
 */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'number' || value instanceof Long) return String(value)
  if (Array.isArray(value)) return `[${value.map(textOf)}]`
  // A text, or a date and other values that were not JSON when they were written.
  if (typeof value !== 'object' || typeof Reflect.get(value, 'toJSON') === 'function') return JSON.stringify(value)
  return `{${Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${textOf(member)}`)}}`
}
