import { isKey } from './arguments.js'
import { InvalidCursor } from './errors.js'

/** URL-safe base64 with padding, as Python makes it. */
function encode(text: string): string {
  const base64 = Buffer.from(text).toString('base64url')
  return base64.padEnd(Math.ceil(base64.length / 4) * 4, '=')
}

/** More than a key of 1024 bytes and the rest take as base64. */
const MAX_LENGTH = 2048

function decode(cursor: unknown): string {
  if (typeof cursor !== 'string') throw new InvalidCursor('is not a string')
  const text = cursor.length > MAX_LENGTH ? '' : Buffer.from(cursor, 'base64url').toString()
  // Node.js reads over whatever is no base64.
  if (encode(text) !== cursor || text === '') throw new InvalidCursor('is damaged')
  return text
}

// The fingerprint covers the position too: a cursor that was cut off must not go on from elsewhere.
const notOfTheseFilters = () => new InvalidCursor('was made under other filters, or is damaged')

/**
 * The cursor of a listing that goes on at an offset: base64 of its decimal digits, as Python harel makes it, and of
 * the fingerprint of the filters where one is given.
 */
export const encodeOffset = (offset: number, fingerprint = ''): string =>
  encode(fingerprint === '' ? String(offset) : `${offset}.${fingerprintOf([fingerprint, offset])}`)

/** @throws InvalidCursor when it was not made by `encodeOffset` with this fingerprint */
export function decodeOffset(cursor: string, fingerprint = ''): number {
  const match = /^(0|[1-9]\d{0,15})(?:\.(.+))?$/s.exec(decode(cursor))
  const offset = Number(match?.[1])
  if (match === null || !Number.isSafeInteger(offset)) throw new InvalidCursor('was not made by a listing with offsets')
  if ((match[2] ?? '') !== (fingerprint === '' ? '' : fingerprintOf([fingerprint, offset]))) throw notOfTheseFilters()
  return offset
}

/** The cursor of a listing that goes on behind a key. */
export const encodeKey = (key: string, fingerprint = ''): string =>
  encode(`k.${fingerprintOf([fingerprint, key])}.${key}`)

/** @throws InvalidCursor when it was not made by `encodeKey` with this fingerprint */
export function decodeKey(cursor: string, fingerprint = ''): string {
  const match = /^k\.([^.]*)\.(.*)$/s.exec(decode(cursor))
  const key = match?.[2]
  if (match === null || !isKey(key)) throw new InvalidCursor('was not made by a listing with keys')
  if (match[1] !== fingerprintOf([fingerprint, key])) throw notOfTheseFilters()
  return key
}

/** A short hash (FNV-1a, 32 bits) that tells filters apart; it protects nothing. */
export function fingerprintOf(filters: unknown): string {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(JSON.stringify(filters))) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(36)
}
