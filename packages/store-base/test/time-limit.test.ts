import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { TimeLimit } from '../src/time-limit.js'

const never = new Promise<never>(() => {})

/** By a clock that goes on only when it is told. */
function withClock() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

describe('a time limit', () => {
  test('passes on what comes in time, results as well as errors', async () => {
    const limit = new TimeLimit(1000)
    expect(await limit.within(Promise.resolve(5))).toBe(5)
    await expect(limit.within(Promise.reject(new RangeError('too far')))).rejects.toThrow(RangeError)
  })

  test('rejects with a TimeoutError what takes longer, each at its own time', async () => {
    withClock()
    const limit = new TimeLimit(1000)
    const ended: string[] = []
    const wait = (name: string) => limit.within(never).catch((error: Error) => ended.push(`${name}: ${error.name}`))
    const first = wait('first')
    await vi.advanceTimersByTimeAsync(400)
    const second = wait('second')
    await vi.advanceTimersByTimeAsync(599)
    expect(ended).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    await first
    expect(ended).toEqual(['first: TimeoutError'])
    await vi.advanceTimersByTimeAsync(399)
    expect(ended).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    await second
    expect(ended).toEqual(['first: TimeoutError', 'second: TimeoutError'])
  })

  test('gives what comes after an idle time as long as what came first', async () => {
    withClock()
    const limit = new TimeLimit(1000)
    await limit.within(Promise.resolve())
    await vi.advanceTimersByTimeAsync(900)
    let ended = false
    const waiting = limit.within(never).catch(() => {
      ended = true
    })
    await vi.advanceTimersByTimeAsync(999)
    expect(ended).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await waiting
  })

  test('has one timer, however many wait', async () => {
    withClock()
    const limit = new TimeLimit(1000)
    await Promise.all(Array.from({ length: 100 }, () => limit.within(Promise.resolve())))
    for (let waiting = 0; waiting < 100; waiting++) limit.within(never).catch(() => {})
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(2000)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('keeps a process alive while something is waited for, and not after it', async () => {
    const run = async (milliseconds: number, last: string) => {
      const program = `
        const { TimeLimit } = await import(${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)})
        const limit = new TimeLimit(${milliseconds})
        await limit.within(Promise.resolve())
        ${last}`
      const options = { timeout: 20_000 }
      return promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], options)
    }
    const given = await run(200, 'await limit.within(new Promise(() => {})).catch(({ name }) => console.log(name))')
    expect(given.stdout).toBe('TimeoutError\n')
    expect((await run(60_000, 'console.log("done")')).stdout).toBe('done\n')
  })
})
