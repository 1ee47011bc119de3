/** The longest delay of a timer, in milliseconds; a longer one would be none. */
export const MAX_DELAY = 2 ** 31 - 1

/**
 * What work results in, or a `TimeoutError` as of `AbortSignal.timeout` when that takes longer than so many
 * milliseconds. Whatever becomes of it after that, nobody looks at.
 *
 * @param milliseconds at most `MAX_DELAY`
 */
export async function inTime<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DOMException(`no reply for ${milliseconds} ms`, 'TimeoutError')), milliseconds)
  })
  try {
    return await Promise.race([work, silence])
  } finally {
    clearTimeout(timer)
  }
}
