import { OutcomeUnknown, SchemaMissing, StoreClosed, StoreError, StoreUnavailable } from '@harel/store-base'
import { mayPass, type SqlExecutor, wasNotSent } from '@harel/store-base/sql'

/** Another connection has the lock, or an open transaction has the only connection. Nothing was done. */
export const BUSY = /^(SQLITE_BUSY|SQLITE_LOCKED|TRANSACTION_BUSY|TRANSACTION_ACTIVE)/
/** Nothing of the transaction was written. After a failure of the disk, what is read now does not tell either. */
const REFUSED = /^(SQLITE_(?!IOERR)|SQL_|ARGS_|AUTH_|TRANSACTION_)/
/** What is asked for again is refused again. */
const WRONG = /^(SQL_|ARGS_|AUTH_|RESPONSE_TOO_LARGE)/
/** sqld sends 10 MB at once. */
export const TOO_LARGE = 'RESPONSE_TOO_LARGE'

export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** The status of HTTP with which a server answered a request as a whole. */
const statusOf = ({ cause }: Error): string => String((cause as { status?: unknown } | undefined)?.status)

/** Whether a server refused the request itself. */
const wasRefused = (error: Error): boolean => /^4\d\d$/.test(statusOf(error))

/** Whether the same request may succeed later, if nobody does anything about it. */
function isRetryable(error: Error): boolean {
  const code = codeOf(error)
  if (code.startsWith('SQLITE_')) return mayPass(code)
  // 408 and 429 say that it came at a bad time.
  return !WRONG.test(code) && !/^4(?!08|29)\d\d$/.test(statusOf(error))
}

/** Whether no reply came in time: by a `TimeLimit`, and by the signals of fetch. */
export const isSilence = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'

/** What a driver's error is to a caller. */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const table = /no such table: (?:main\.)?(\w+)/.exec(error.message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  const code = codeOf(error)
  if (code === 'CLIENT_CLOSED') return new StoreClosed()
  if (writes && !REFUSED.test(code) && !wasRefused(error) && !wasNotSent(error)) {
    const untold = code.startsWith('SQLITE_IOERR')
    return new OutcomeUnknown('libSQL has not told whether it has committed', error, { untold })
  }
  if (isSilence(error)) return new StoreUnavailable('libSQL has not replied in time', error)
  const reason = `libSQL failed${code === '' ? '' : ` with ${code}`}`
  return new StoreUnavailable(reason, error, { retryable: isRetryable(error) })
}

/** Why statements have failed, as `SqlExecutor` wants it told. */
export function reasonOf(error: unknown): ReturnType<SqlExecutor['reasonOf']> {
  const code = error instanceof StoreUnavailable ? codeOf(error.cause) : ''
  if (code === TOO_LARGE) return 'too large'
  return REFUSED.test(code) && !BUSY.test(code) ? 'refused' : undefined
}
