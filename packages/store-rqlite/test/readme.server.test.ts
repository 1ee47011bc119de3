import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { everything, execution, failure, open } from './helpers.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const block = (language: string): string =>
  new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(readme)?.[1] ?? ''

test('the README fits on a screen, names every option, and points at nothing that is missing', () => {
  expect(readme.split('\n').length).toBeLessThan(80)
  const options = readFileSync(join(root, 'src/options.ts'), 'utf8').match(/^ {2}(\w+)(?=\?:)/gm) ?? []
  for (const option of [...options, 'username', 'password', 'numbers', 'onWarning']) {
    expect(readme).toContain(`\`${option.trim()}\``)
  }
  const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
  expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
})

withServer('rqlite', () => {
  // Inside the package, because that is where the package is found; as something built, so that nobody else minds.
  const folder = mkdtempSync(join(root, 'dist', 'readme-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  /** A server of its own: the snippet prints all that is in the outbox. */
  async function ownServer(perms?: readonly string[]): Promise<string> {
    const users = (JSON.parse(block('json')) as { username: string; password: string; perms: string[] }[]).map(
      (user) => ({ ...user, perms: perms ?? user.perms }),
    )
    const server = await startServer('rqlite', { own: true, users })
    onTestFinished(() => server.stop())
    const [{ username, password } = expect.unreachable()] = users
    return server.url.replace('://', `://${username}:${password}@`)
  }

  test('the snippet of the README compiles and does what it says', { timeout: 120_000 }, async () => {
    writeFileSync(join(folder, 'snippet.ts'), block('ts'))
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
    const env = { ...process.env, RQLITE_URL: await ownServer() }
    const run = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
      return { status, output: stdout + stderr }
    }
    const tsc = join(root, '../../node_modules/typescript/bin/tsc')
    expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
    expect(run('snippet.ts')).toEqual({ status: 0, output: 'PLACED for billing\n' })
  })

  test('the permissions of the README are enough for all that a store does (B43)', async () => {
    const store = await open(await ownServer())
    const held = execution('a')
    await store.commit(held, everything('a'))
    await Promise.all([store.commit(held), store.commit(execution('b'), everything('b'))])
    await store.appendTrace('a', {})
    await store.publishDefinition({ id: 'd', version: '1', definition: {} })
    await store.ackOutbox((await store.pendingOutbox()).map(({ seq }) => seq))
    await store.ackSpawn((await store.pendingSpawns()).map(({ seq }) => seq))
    await store.deleteTimer('b', 'P', 1)
    await store.migrate()
    expect((await store.listExecutions({ status: 'PENDING' })).items).toHaveLength(2)
    expect(await store.purge('a', 2)).toBe(true)
  })

  test.each(['query', 'execute'])('the permission %s alone is not enough', async (permission) => {
    const url = await ownServer([permission])
    expect(await failure(open(url))).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
  })
})
