import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { installed } from '../src/install.ts'

let cache: string
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'harel-install-'))
})
afterEach(() => rmSync(cache, { recursive: true }))

const fill = async (folder: string) => writeFileSync(join(folder, 'program'), 'complete')

// It ran once and runs no more, whatever has its process id today.
const DEAD = `${spawnSync('true').pid}-1`

test('an installation is made once, also when several want it at once', async () => {
  let times = 0
  const slowly = async (folder: string) => {
    times++
    await delay(300)
    await fill(folder)
  }
  const folders = await Promise.all([installed('server-1', slowly, cache), installed('server-1', slowly, cache)])
  expect(folders).toEqual([join(cache, 'server-1'), join(cache, 'server-1')])
  await installed('server-1', slowly, cache)
  expect(times).toBe(1)
  expect(readdirSync(cache)).toEqual(['server-1'])
})

test('an installation that fails leaves nothing, and the next one succeeds', async () => {
  const half = async (folder: string) => {
    await fill(folder)
    throw new Error('no network')
  }
  await expect(installed('server-1', half, cache)).rejects.toThrow('no network')
  expect(readdirSync(cache)).toEqual([])
  expect(existsSync(join(await installed('server-1', fill, cache), 'program'))).toBe(true)
})

test('what a killed installation left, its lock and its folder, does not stand in the way', async () => {
  mkdirSync(join(cache, `server-1.part.${DEAD}`))
  symlinkSync(DEAD, join(cache, 'server-1.lock'))
  await installed('server-1', fill, cache)
  expect(readdirSync(cache)).toEqual(['server-1'])
})

test('of two complete installations the first is kept', async () => {
  const beaten = async (folder: string) => {
    mkdirSync(join(cache, 'server-1'))
    writeFileSync(join(cache, 'server-1', 'program'), 'first')
    await fill(folder)
  }
  const folder = await installed('server-1', beaten, cache)
  expect(readFileSync(join(folder, 'program'), 'utf8')).toBe('first')
  expect(readdirSync(cache)).toEqual(['server-1'])
})
