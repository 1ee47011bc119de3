import { CommitTooLarge, type OutcomeUnknown, StoreClosed, StoreError, StoreUnavailable } from '@harel/store-base'
import {
  MongoClientClosedError,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoWriteConcernError,
} from 'mongodb'

/** A document has at most so many bytes. */
export const MAX_DOCUMENT = 16 * 1024 * 1024

/** DuplicateKey: another one was first. */
export const isDuplicate = (error: unknown): boolean => error instanceof MongoServerError && error.code === 11000

/**
 * Upserts of one document at once may all try to insert it, and all but one fail: the second time it is there
 * (https://www.mongodb.com/docs/manual/reference/method/db.collection.updateOne/#upsert-with-duplicate-values).
 */
export const retriedOnce = <T>(upsert: () => Promise<T>): Promise<T> =>
  upsert().catch((error: unknown) => {
    if (isDuplicate(error)) return upsert()
    throw error
  })

/** NamespaceNotFound: there is no such collection. */
export const isMissing = (error: unknown): boolean => error instanceof MongoServerError && error.code === 26

/** No server that could be asked was found in time. */
export const isUnreachable = (error: unknown): boolean => error instanceof MongoServerSelectionError

/** IllegalOperation: transactions are only for members of a replica set, and for mongos. */
export const hasNoTransactions = (error: unknown): boolean => {
  const cause = error instanceof StoreError ? error.cause : error
  return cause instanceof MongoServerError && cause.code === 20
}

/** BSONObjectTooLarge and its relatives: the document would have grown over its limit; nothing was written. */
const isTooLarge = ({ code }: MongoError): boolean => [10334, 17419, 17420].includes(Number(code))

const isClosed = (error: MongoError): boolean =>
  error instanceof MongoTopologyClosedError ||
  error instanceof MongoClientClosedError ||
  error instanceof MongoNotConnectedError

/** Whether a reply is missing, or says that what was done may be undone. */
const isLost = (error: MongoError): boolean =>
  isUnreachable(error) ||
  error instanceof MongoNetworkError ||
  error instanceof MongoOperationTimeoutError ||
  error instanceof MongoWriteConcernError ||
  error.hasErrorLabel('RetryableWriteError') ||
  error.hasErrorLabel('UnknownTransactionCommitResult')

/**
 * What an error of the driver is to a caller.
 *
 * @param Lost where a reply is missing, so that nobody knows what has become of what was asked
 */
export function toStoreError(error: unknown, Lost: typeof StoreUnavailable | typeof OutcomeUnknown): unknown {
  if (error instanceof StoreError || !(error instanceof MongoError)) return error
  if (isClosed(error)) return new StoreClosed()
  if (isTooLarge(error)) return new CommitTooLarge('bytes or more in its document', MAX_DOCUMENT + 1, MAX_DOCUMENT)
  const cause = withoutValues(error)
  if (isLost(error)) return new Lost('the connection to MongoDB was lost or could not be made', cause)
  return new StoreUnavailable(`MongoDB refused${error.code === undefined ? '' : ` with code ${error.code}`}`, cause)
}

/** The server's answer may show what it does not like about a document. */
function withoutValues(error: MongoError): MongoError {
  for (const member of ['errorResponse', 'errInfo', 'result']) Reflect.deleteProperty(error, member)
  return error
}
