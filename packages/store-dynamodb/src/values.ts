/**
 * Attribute values, written out: what the caller's document client makes of values, with its options, does not matter.
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { InvalidArgument } from '@harel/store-base'

export type Item = Record<string, AttributeValue>

export const S = (text: string): AttributeValue => ({ S: text })
export const SOrNull = (text: string | null): AttributeValue => (text === null ? { NULL: true } : { S: text })
export const N = (value: number): AttributeValue => ({ N: String(value) })

/** A time as a number of DynamoDB's, which are smaller and coarser than doubles at the far ends. */
export function time(value: number): AttributeValue {
  const magnitude = Math.abs(value)
  if (magnitude !== 0 && (magnitude < 1e-130 || magnitude > 9.9e125)) {
    throw new InvalidArgument('changes.timers[].fireAt', value, '0 or from 1e-130 to 9.9e125')
  }
  return N(value)
}

export const text = (value: AttributeValue | undefined): string => value?.S ?? ''
export const textOrNull = (value: AttributeValue | undefined): string | null => value?.S ?? null
export const number = (value: AttributeValue | undefined): number => Number(value?.N)
export const numberOrNull = (value: AttributeValue | undefined): number | null =>
  value?.N === undefined ? null : Number(value.N)

const utf8 = new TextEncoder()

/** About what DynamoDB counts: names and values in UTF-8. Source: "DynamoDB Item sizes and formats" of its documentation. */
export function sizeOf(item: Item): number {
  let size = 0
  for (const [name, value] of Object.entries(item)) {
    size += name.length + (value.S === undefined ? (value.N?.length ?? 1) : utf8.encode(value.S).length)
  }
  return size
}
