/**
 * Attribute values, written out: what the caller's document client makes of values, with its options, does not matter.
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'

export type Item = Record<string, AttributeValue>

export const S = (text: string): AttributeValue => ({ S: text })
export const N = (value: number): AttributeValue => ({ N: String(value) })
const NULL: AttributeValue = { NULL: true }
export const SOrNull = (text: string | null): AttributeValue => (text === null ? NULL : S(text))
/** A number as text, where nobody compares it: DynamoDB's numbers have not the range of doubles. */
export const doubleOrNull = (value: number | null): AttributeValue => (value === null ? NULL : S(String(value)))

export const text = (value: AttributeValue | undefined): string => value?.S ?? ''
export const textOrNull = (value: AttributeValue | undefined): string | null => value?.S ?? null
export const number = (value: AttributeValue | undefined): number => Number(value?.N)
export const toDoubleOrNull = (value: AttributeValue | undefined): number | null =>
  value?.S === undefined ? null : Number(value.S)

/** The range of DynamoDB's numbers. Source: "Supported data types and naming rules" of its documentation. */
const SMALLEST = 1e-130
const GREATEST = 9.99e125

/** A time as the nearest number that DynamoDB has, in which times keep their order but for those it cannot tell apart. */
export function time(value: number): AttributeValue {
  const magnitude = Math.min(Math.max(Math.abs(value), SMALLEST), GREATEST)
  return N(value === 0 ? 0 : Math.sign(value) * magnitude)
}

/** The attributes of a time: for one that DynamoDB's numbers do not hold, its text beside the nearest. */
export function timeAttributes(value: number): Item {
  const fire_at = time(value)
  return number(fire_at) === value ? { fire_at } : { fire_at, exact: S(String(value)) }
}

export const timeOf = ({ fire_at, exact }: Item): number => (exact?.S === undefined ? number(fire_at) : Number(exact.S))

/** The most that a number takes. */
const NUMBER_SIZE = 21

/** What DynamoDB counts: names and values in UTF-8. Source: "DynamoDB item sizes and formats" of its documentation. */
export function sizeOf(item: Item): number {
  let size = 0
  for (const [name, { S, N }] of Object.entries(item)) {
    size += Buffer.byteLength(name) + (S === undefined ? (N === undefined ? 1 : NUMBER_SIZE) : Buffer.byteLength(S))
  }
  return size
}
