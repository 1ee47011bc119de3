/**
 * JSON texts as the BSON that Python harel reads (contexts of spawns, steps of a trace), and back.
 */
import { type JsonValue, NotSerializable } from '@harel/store-base'
import { DBRef, Double, Int32, Long } from 'mongodb'

/** A `Map` keeps members that the driver takes for its own: `_bsontype`, `$ref` with `$id`, `__proto__`. */
export type BsonValue = null | boolean | string | Int32 | Long | Double | BsonValue[] | Map<string, BsonValue>

const INT32 = 2 ** 31

/** The number that Python would have written: an integer as such, anything else as a double. */
export function toNumber(value: number): Int32 | Long | Double {
  if (!Number.isSafeInteger(value)) return new Double(value)
  return value >= -INT32 && value < INT32 ? new Int32(value) : Long.fromNumber(value)
}

/** @throws NotSerializable for a key with U+0000, which BSON cannot hold */
export function toBson(value: JsonValue, name: string): BsonValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number') return toNumber(value)
  if (Array.isArray(value)) return value.map((item) => toBson(item, name))
  return new Map(
    Object.entries(value).map(([key, member]) => {
      if (key.includes('\0')) throw new NotSerializable(name, 'has a key with U+0000, which MongoDB cannot hold')
      return [key, toBson(member, name)]
    }),
  )
}

/** What a document holds, as a value for JSON. Numbers that JavaScript does not hold exactly become what it holds. */
export function fromBson(value: unknown): JsonValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean' || typeof value === 'string' || typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Int32 || value instanceof Double || value instanceof Long) return Number(value)
  if (Array.isArray(value)) return value.map(fromBson)
  if (value instanceof DBRef) return fromBson(value.toJSON())
  if (value instanceof Date) return value.toISOString()
  return Object.fromEntries(Object.entries(value as object).map(([key, member]) => [key, fromBson(member)]))
}
