/** What an `AsyncSqliteStore` and its worker thread say to each other. */
import { type StoreCapabilities, StoreError } from '@harel/store-base'
import type { Settings } from './schema.js'

export interface WorkerSettings extends Settings {
  path: string
  /** The file of better-sqlite3. */
  driver: string
}

/** The first message of a worker. */
export type Opened = { capabilities: StoreCapabilities; warnings: string[] } | { error: WireError }

export interface Call {
  id: number
  /** `store`: the backend; `within`: the same inside the open transaction; `transaction`: its begin, end and statements. */
  target: 'store' | 'within' | 'transaction'
  method: string
  args: readonly unknown[]
}

export type Reply = { id: number; value: unknown } | { id: number; error: WireError }

/** An error as it can be sent: of an error object, only the message would arrive. */
export interface WireError {
  name: string
  message: string
  code?: unknown
  retryable?: boolean
  /** Own fields of a `StoreError`. */
  fields?: Record<string, unknown>
  cause?: WireError
}

export function toWireError(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const cause = error.cause === undefined ? {} : { cause: toWireError(error.cause) }
  const { name, message } = error
  if (!(error instanceof StoreError))
    return { name, message, ...('code' in error ? { code: error.code } : {}), ...cause }
  const { code, retryable, ...fields } = error
  return { name, message, code, retryable, fields: { ...fields, name }, ...cause }
}

/** A `StoreError` again (which `instanceof` recognises by its code), or a plain error with its code. */
export function fromWireError({ name, message, code, retryable, fields, cause }: WireError): Error {
  const original = cause === undefined ? undefined : fromWireError(cause)
  if (fields === undefined) {
    return Object.assign(new Error(message, { cause: original }), { name }, code === undefined ? {} : { code })
  }
  const error = new StoreError(code as StoreError['code'], message, { retryable: retryable ?? false, cause: original })
  return Object.assign(error, fields)
}
