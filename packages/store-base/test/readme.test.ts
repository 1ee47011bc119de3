import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as base from '@harel/store-base'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { queuesAndLists } from './fixtures/queues-and-lists.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [snippet = ''] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)

// Inside the package, because that is where the package is found; as something built, so that nobody else minds.
const folder = mkdtempSync(join(root, 'dist', 'readme-'))

beforeAll(() => {
  writeFileSync(join(folder, 'my-store.ts'), snippet)
  const compilerOptions = { allowImportingTsExtensions: true }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: ['.'] }),
  )
})

afterAll(() => rmSync(folder, { recursive: true }))

describe('the README', { timeout: 120_000 }, () => {
  test('has a snippet that compiles', () => {
    const tsc = join(root, '../../node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, '--project', folder], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  })

  test('shows every method that it does not leave out as shown elsewhere', () => {
    const shown: Exclude<keyof base.StoreBackend, keyof ReturnType<typeof queuesAndLists>>[] = ['load', 'commit']
    for (const method of shown) expect(snippet).toContain(`async ${method}(`)
  })

  test('shows a store that commits and conflicts', async () => {
    const { MyStore } = (await import(join(folder, 'my-store.ts'))) as {
      MyStore: new (rest: ReturnType<typeof queuesAndLists>) => base.ExecutionStore
    }
    const store = new MyStore(queuesAndLists())
    const execution = base.newExecution({ definitionId: 'd', id: 'x' })
    const event = base.newEvent({ kind: 'k' })
    expect(await store.commit(execution, { emits: [{ targetId: null, event }] })).toEqual([1])
    expect(await store.load('x')).toEqual(execution)
    await expect(store.commit({ ...execution, version: 0 })).rejects.toBeInstanceOf(base.StoreConflict)
  })

  test('names nothing that is not exported, and fits on a screen', () => {
    const rows = readme.split('\n').filter((line) => line.startsWith('| ') && !line.includes('protocol.ts'))
    const names = rows.flatMap((line) => [
      ...line.matchAll(/`([a-z]\w+|[A-Z]\w+Store|StoreError|Coalescer|Sequence|Names)\b/g),
    ])
    const known = [...Object.keys(base), 'code', 'sqlSchema']
    expect(names.length).toBeGreaterThan(25)
    expect(names.map(([, name]) => name).filter((name) => !known.includes(name ?? ''))).toEqual([])
    expect(readme.split('\n').length).toBeLessThan(80)
  })

  test('points at nothing that is missing', () => {
    const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
    expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
  })
})
