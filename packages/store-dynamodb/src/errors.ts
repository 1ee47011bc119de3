import {
  type CancellationReason,
  DynamoDBServiceException,
  ResourceNotFoundException,
  TransactionCanceledException,
} from '@aws-sdk/client-dynamodb'
import { OutcomeUnknown, SchemaMissing, StoreError, StoreUnavailable } from '@harel/store-base'

/** Tries of what other transactions or a throttled table have kept from being done. */
const TRIES = 10

/** Refused for the sake of others, or for now: nothing was written. */
const PASSING =
  /^(TransactionConflict|TransactionConflictException|TransactionInProgressException|ThrottlingError|ThrottlingException|ProvisionedThroughputExceeded|ProvisionedThroughputExceededException|RequestLimitExceeded|InternalServerError)$/

export const reasonsOf = (error: unknown): CancellationReason[] =>
  error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : []

/** A condition that did not hold is never a passing one: it comes first. */
function isPassing(error: unknown): boolean {
  const codes = reasonsOf(error).map(({ Code = 'None' }) => Code)
  if (codes.length > 0) {
    return !codes.includes('ConditionalCheckFailed') && codes.some((code) => PASSING.test(code))
  }
  return error instanceof DynamoDBServiceException && PASSING.test(error.name)
}

/** What a driver's error is to a caller. An answer of the service's says that nothing was written. */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  if (error instanceof ResourceNotFoundException) return new SchemaMissing(['a table of the store'])
  const answered = error instanceof DynamoDBServiceException && error.$fault === 'client'
  if (
    writes &&
    !answered &&
    !/ECONNREFUSED|ENOTFOUND|CredentialsProviderError/.test(`${codeOf(error)} ${error.name}`)
  ) {
    return new OutcomeUnknown('the connection to DynamoDB broke before the reply', error)
  }
  return new StoreUnavailable(`DynamoDB failed with ${error.name}`, error)
}

const codeOf = (error: Error): string => ('code' in error ? String(error.code) : '')

/** Tries again, after a random time that grows, what was refused for now. */
export async function patiently<T>(attempt: () => Promise<T>, writes: boolean): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (!isPassing(error) || tries === TRIES)
        throw reasonsOf(error).length > 0 && !isPassing(error) ? error : toStoreError(error, writes)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(2 ** tries * 5, 1000)))
    }
  }
}
