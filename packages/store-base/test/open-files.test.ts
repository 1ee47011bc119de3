import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { InvalidArgument } from '../src/errors.js'
import { claimFile } from '../src/sql/open-files.js'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'harel-claims-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const claim = (path: string, name: string) => claimFile('path', path, name)

test('a file is claimed by one package at a time, as often as it likes', () => {
  const path = join(newFolder(), 'a.db')
  const releases = [claim(path, 'one'), claim(path, 'one')]
  expect(() => claim(path, 'two')).toThrow(InvalidArgument)
  releases[0]?.()
  releases[0]?.()
  expect(() => claim(path, 'two')).toThrow('path must be a file that no store of one has open in this process')
  releases[1]?.()
  claim(path, 'two')()
  claim(path, 'one')()
})

test.each([true, false])('a file is known under each of its names (it exists: %s)', (exists) => {
  const folder = newFolder()
  const path = join(folder, 'a.db')
  if (exists) writeFileSync(path, '')
  symlinkSync(folder, join(folder, 'link'))
  const names = [
    relative(process.cwd(), path),
    join(folder, 'link', 'a.db'),
    `${folder}/link/../${basename(folder)}/a.db`,
  ]
  if (exists) {
    symlinkSync(path, join(folder, 'b.db'))
    names.push(join(folder, 'b.db'))
  }
  const release = claim(path, 'one')
  for (const name of names) expect(() => claim(name, 'two'), name).toThrow(InvalidArgument)
  release()
  for (const name of names) claim(name, 'two')()
})

test('a file is still known when it has been made meanwhile', () => {
  const path = join(newFolder(), 'a.db')
  const release = claim(path, 'one')
  writeFileSync(path, '')
  expect(() => claim(path, 'two')).toThrow(InvalidArgument)
  release()
  claim(path, 'two')()
})

test('a file in a folder that does not exist is no error: whoever opens it says so', () => {
  claim(join(newFolder(), 'missing', 'folder', 'a.db'), 'one')()
})
