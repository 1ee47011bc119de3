import {
  CommitTooLarge,
  OutcomeUnknown,
  SchemaMissing,
  StoreClosed,
  StoreError,
  StoreUnavailable,
} from '@harel/store-base'
import {
  MongoClientClosedError,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from 'mongodb'

/** A document has at most so many bytes. */
export const MAX_DOCUMENT = 16 * 1024 * 1024

/** DuplicateKey: another one was first. */
export const isDuplicate = (error: unknown): boolean => error instanceof MongoServerError && error.code === 11000

/** BSONObjectTooLarge and its relatives: the document would have grown over its limit; nothing was written. */
const isTooLarge = (error: MongoError): boolean =>
  [10334, 17419, 17420].includes(Number(error.code)) ||
  /object to insert too large|larger than the maximum/i.test(error.message)

/** What a driver's error is to a caller. An answer of the server's says that the write was not done. */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof MongoError)) return error
  if (
    error instanceof MongoTopologyClosedError ||
    error instanceof MongoClientClosedError ||
    error instanceof MongoNotConnectedError
  ) {
    return new StoreClosed()
  }
  if (isTooLarge(error)) return new CommitTooLarge('bytes in its document', MAX_DOCUMENT + 1, MAX_DOCUMENT)
  if (error instanceof MongoServerSelectionError) return new StoreUnavailable('no MongoDB server can be reached', error)
  if (error.code === 26) return new SchemaMissing(['a collection of the store'])
  const unsure = error instanceof MongoNetworkError || error.hasErrorLabel('RetryableWriteError') || error.code === 64
  if (writes && unsure) return new OutcomeUnknown('the connection to MongoDB broke before the reply', error)
  return new StoreUnavailable(`MongoDB failed${error.code === undefined ? '' : ` with code ${error.code}`}`, error)
}

/** Runs something that only reads, or that does the same when it is done twice. */
export async function reading<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw toStoreError(error, false)
  }
}
