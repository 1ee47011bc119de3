import { NotSerializable } from './errors.js'
import type { Execution } from './records.js'

/**
 * What happens to numbers that JavaScript does not hold exactly (Python's integers have no bounds): with `exact` an
 * object that was loaded with one cannot be committed, with `lossy` it is written back rounded (not finite: null).
 */
export type Numbers = 'exact' | 'lossy'

/** How findings are reported that do not stop the work. A message shows no content of records but for such numbers. */
export type OnWarning = (message: string) => void

/** Options of reading records. */
export interface ReadOptions {
  onWarning?: OnWarning | undefined
  numbers?: Numbers | undefined
}

/** Loaded records and their contexts that hold a rounded number, by the text of that number. */
const rounded = new WeakMap<object, string>()

/** Remembers and reports that a record was loaded with a rounded number. */
export function noteRounded(
  number: string | undefined,
  record: string,
  options: ReadOptions,
  holders: readonly object[],
): void {
  if (number === undefined || options.numbers === 'lossy') return
  for (const holder of holders) rounded.set(holder, number)
  options.onWarning?.(`${record} holds the number ${number}, which JavaScript does not hold exactly`)
}

/** @throws NotSerializable if one of the values was loaded with a rounded number */
export function refuseRounded(name: string, ...values: readonly unknown[]): void {
  for (const value of values) {
    const number = typeof value === 'object' && value !== null ? rounded.get(value) : undefined
    if (number === undefined) continue
    throw new NotSerializable(
      name,
      `was loaded with the number ${number}, which JavaScript does not hold exactly; open the store with numbers: 'lossy' to write it rounded`,
    )
  }
}

/** What is not to be committed as one object is not to be committed as a copy. */
export function copyRounded(from: Execution, to: Execution): void {
  const number = rounded.get(from) ?? rounded.get(from.context)
  if (number !== undefined) rounded.set(to, number)
}
