import {
  type CancellationReason,
  ResourceNotFoundException,
  TransactionCanceledException,
} from '@aws-sdk/client-dynamodb'
import { SchemaMissing, StoreError, StoreUnavailable } from '@harel/store-base'

/** Refused for the sake of others, or for now. Source: "Error handling with DynamoDB" and TransactWriteItems in its documentation. */
const PASSING = new Set([
  'LimitExceededException',
  'ProvisionedThroughputExceeded',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingError',
  'ThrottlingException',
  'TransactionConflict',
  'TransactionConflictException',
  'TransactionInProgressException',
])

/** What the names of errors mean to somebody who has to put it right. */
const REASONS: Readonly<Record<string, string>> = {
  AccessDeniedException: 'the credentials lack a right; the README lists those that are needed',
  CredentialsProviderError: 'there are no credentials',
  ExpiredTokenException: 'the credentials have expired',
  TransactionCanceledException: 'other transactions or throttling were in the way all the time',
  UnrecognizedClientException: 'it does not know the credentials',
}

/** What the driver's errors have in common; which of it there is depends on where they come from. */
interface DriverError extends Error {
  /** On answers of the service: whose fault it is. */
  readonly $fault?: 'client' | 'server'
  readonly $metadata?: { readonly httpStatusCode?: number }
  /** Of Node.js. */
  readonly code?: string
}

export const reasonsOf = (error: unknown): CancellationReason[] =>
  error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : []

/** Whether a condition of a write did not hold, which no repetition changes. */
export const isUnmet = (error: unknown): boolean =>
  error instanceof Error &&
  (error.name === 'ConditionalCheckFailedException' ||
    reasonsOf(error).some(({ Code }) => Code === 'ConditionalCheckFailed'))

/** Nobody was reached, so nothing was sent. */
const UNREACHED = /^(ECONNREFUSED|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOTFOUND)$/

/**
 * Whether the request was sent and nobody knows what became of it: there was no answer, or half of one, or one that tells
 * nothing. An answer with a status of 500 does not: "the operation may have succeeded or failed" ("Error handling with
 * DynamoDB").
 */
export function isLost(error: unknown): boolean {
  const { name, $fault, $metadata, code = '' } = error as DriverError
  if (name === 'TransactionInProgressException') return true
  if ($fault === 'client' || UNREACHED.test(code)) return false
  return $metadata?.httpStatusCode !== undefined || name === 'TimeoutError' || /^(E(?!RR_)|HPE_)/.test(code)
}

/** Whether the same request may be answered otherwise a moment later. */
export function isPassing(error: unknown): boolean {
  const { name, code = '' } = error as DriverError
  if (isUnmet(error)) return false
  if (reasonsOf(error).some(({ Code = '' }) => PASSING.has(Code))) return true
  return PASSING.has(name) || isLost(error) || UNREACHED.test(code)
}

/** What an error of the driver is to a caller: nothing was written. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  if (error instanceof ResourceNotFoundException) return new SchemaMissing(['a table of the store'])
  const { name, $fault } = error as DriverError
  const codes = [...new Set(reasonsOf(error).map(({ Code }) => Code))].filter((code) => code !== 'None')
  const refusal = codes.length === 0 ? name : `${name} (${codes.join(', ')})`
  const reason = name in REASONS ? `: ${REASONS[name]}` : ''
  return new StoreUnavailable(
    $fault === 'client' || name in REASONS
      ? `DynamoDB refused with ${refusal}${reason}`
      : 'the connection to DynamoDB was lost or could not be made',
    error,
  )
}
