import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runQuickStart } from './run.ts'

describe('the quick start', { timeout: 120_000 }, () => {
  test('does every order exactly once although its worker is killed twice', async () => {
    const { code, output, path } = await runQuickStart('--orders', '20', '--kills', '2')
    expect(output).toContain('kill 2')
    expect(output).toContain('ok    20 orders are done: 19 delivered, 1 refused')
    expect(output).not.toContain('WRONG')
    expect(code).toBe(0)
    expect(path).toMatch(/orders\.db$/)
    expect(existsSync(dirname(path ?? ''))).toBe(false)
  })

  test.for(['--orders=0', '--orders=many', '--kills=-1', '--orders=100000'])('refuses %s', async (option) => {
    const { code, output } = await runQuickStart(option)
    expect(output).toMatch(/^--(orders|kills) must be an integer from [01] to 99999; got /)
    expect(code).toBe(2)
  })

  test.for([['--nope'], ['--kills'], ['--keep=7'], ['orders']])('refuses %s, and says what there is', async (args) => {
    const { code, output } = await runQuickStart(...args)
    expect(output).toMatch(/^\S.*\n\nusage: npm start -- /)
    expect(output).not.toMatch(/^ +at /m)
    expect(code).toBe(2)
  })

  test('says on --help what there is, and does nothing else', async () => {
    const { code, output, path } = await runQuickStart('--help')
    for (const option of ['--orders', '--kills', '--keep', '--help']) expect(output).toContain(`  ${option}`)
    expect({ code, path }).toEqual({ code: 0, path: undefined })
  })
})
