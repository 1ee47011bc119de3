import { checkFunction, checkInteger, checkKey, checkMembers, checkObject, checkTime } from './arguments.js'
import { MAX_LIMIT } from './listing.js'
import type { QueuePage, TimerPage } from './protocol.js'
import type { DueTimer } from './records.js'

/** A part of a queue, checked; the limit may be infinite. */
export interface CheckedQueuePage {
  readonly limit: number
  readonly after: number
}

/** A part of the due timers, checked. */
export interface CheckedTimerPage {
  readonly limit: number
  readonly after: DueTimer | undefined
}

const checkLimit = (limit: unknown): number =>
  limit === undefined ? Number.POSITIVE_INFINITY : checkInteger('page.limit', limit, 1, MAX_LIMIT)

/** @throws InvalidArgument */
export function checkQueuePage(page: QueuePage = {}): CheckedQueuePage & Pick<QueuePage, 'onUnreadable'> {
  const { limit, after, onUnreadable } = checkMembers('page', page, ['limit', 'after', 'onUnreadable'])
  return {
    limit: checkLimit(limit),
    after: after === undefined ? -1 : checkInteger('page.after', after, 0, Number.MAX_SAFE_INTEGER),
    onUnreadable: checkFunction('page.onUnreadable', onUnreadable as QueuePage['onUnreadable']),
  }
}

/** @throws InvalidArgument */
export function checkTimerPage(page: TimerPage = {}): CheckedTimerPage {
  const { limit, after } = checkMembers('page', page, ['limit', 'after'])
  if (after === undefined) return { limit: checkLimit(limit), after }
  const timer = checkObject('page.after', after)
  return {
    limit: checkLimit(limit),
    after: {
      executionId: checkKey('page.after.executionId', timer.executionId),
      path: checkKey('page.after.path', timer.path),
      fireAt: checkTime('page.after.fireAt', timer.fireAt),
    },
  }
}
