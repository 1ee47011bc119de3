import { readFileSync } from 'node:fs'

/** The text of a file that Python harel 0.9.0 made. */
export const vectorText = (name: string): string => readFileSync(new URL(`./vectors/${name}`, import.meta.url), 'utf8')

export const vectors = <T>(name: string): T => JSON.parse(vectorText(name))

/** A text that Python read (`ok`: what it writes of it) or refused. */
export interface ParseCase {
  input: string
  ok?: string
  error?: string
}

const camelCase = (key: string): string => key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const camelKeys = (wire: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(wire).map(([key, value]) => [camelCase(key), value]))

type Wire = Record<string, unknown>

/** A record of ours from Python's, mapped without the codec under test. */
export function fromWire(wire: Wire): Wire {
  const record = camelKeys(wire)
  if (Array.isArray(record.deferred)) record.deferred = record.deferred.map(camelKeys)
  if (record.children !== undefined) {
    const children = Object.entries(record.children as Record<string, Wire>)
    record.children = Object.fromEntries(children.map(([id, child]) => [id, camelKeys(child)]))
  }
  return record
}

/** What two records have in common that hold the same values: -0 is 0, and Python writes null for NaN and Infinity. */
export const textOf = (record: unknown): string => JSON.stringify(record)
