/** What the fillers of large databases share. */
import { BYTES, nextEventId, type Subject, subject, wireEvent } from './subjects.ts'

/** Spread over the table: more pages than a database keeps in memory, where the table is that large. */
export const SAMPLE = 20_000

/** Fills a new database with so many executions, pending events and due timers, and returns some of the executions. */
export type Fill = (url: string, rows: number) => Promise<readonly Subject[]>

/** Timers of these databases are due at this time and in the seconds before. */
export const DUE = 1_767_225_600

/**
 * The id of the nth execution. The hash (an odd number times `n`, modulo 2³²) is different for each `n` and puts them in
 * no order.
 */
export const idOf = (n: number): string => {
  const hash = Math.imul(n, 2_654_435_761) >>> 0
  return hash.toString(16).padStart(8, '0') + n.toString(16).padStart(24, '0')
}

/** Stands in the templates where the id of an execution belongs, and is as long. */
export const ANY_ID = '#'.repeat(32)

/** An execution at version 1 and an event to it, as they are stored. */
export const templates = () => ({
  execution: JSON.stringify(subject({ id: ANY_ID }, BYTES, 1).wire),
  event: JSON.stringify(wireEvent(nextEventId())),
})

/** Some of so many stored executions. */
export function sample(rows: number): Subject[] {
  const every = Math.ceil(rows / SAMPLE)
  return Array.from({ length: Math.floor(rows / every) }, (_, n) => subject({ id: idOf(n * every) }, BYTES, 1))
}
