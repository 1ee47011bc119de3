import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { RedisStore, StoreUnavailable } from '@harel/store-redis'
import { startServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { execution, parts } from './commits.js'
import { clientFor, storeOn } from './database.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [snippet = ''] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)

/** A folder of a user who has installed the package, with the snippet as a program. */
function userFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'harel-redis-readme-')))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, target] of [
    ['@harel/store-redis', root],
    ['@types/node', join(root, '../../node_modules/@types/node')],
  ] as const) {
    const link = join(folder, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(target, link)
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'snippet.ts'), snippet)
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    strict: true,
    noEmit: true,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['snippet.ts'] }))
  return folder
}

async function run(folder: string, args: string[], env: NodeJS.ProcessEnv = process.env) {
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise((resolve) => child.once('close', resolve))
  const [output, errors, status] = await Promise.all([text(child.stdout), text(child.stderr), exited])
  return { status, output: output + errors }
}

withServer('redis', () => {
  test('the snippet of the README compiles and does what it says', async () => {
    await using server = await startServer('redis', { own: true })
    const folder = userFolder()
    const tsc = join(root, '../../node_modules/typescript/bin/tsc')
    expect(await run(folder, [tsc, '--project', folder])).toEqual({ status: 0, output: '' })
    const env = { ...process.env, REDIS_URL: server.url }
    expect(await run(folder, ['snippet.ts'], env)).toEqual({ status: 0, output: 'PLACED for billing\n' })
  })

  test('the rights that the README lists are all that is needed, and none is too many (B43)', async () => {
    await using server = await startServer('redis', { own: true })
    const admin = clientFor(server.url)
    const line = /^ACL (SETUSER[^`]*)^```$/ms.exec(readme)?.[1] ?? ''
    const rights = line.trim().split(/\s+/)
    await admin.call('acl', rights)
    const address = server.url.replace('redis://', 'redis://orders:password@')
    const useAll = async (store: RedisStore) => {
      const held = execution('a')
      for (let n = 0; n < 4; n++) await store.commit(held, parts('a'))
      await store.appendTrace('a', {})
      await store.loadForEvent('a', 'a-event')
      await store.load('a')
      await store.isProcessed('a', 'a-event')
      await store.pendingOutbox()
      await store.pendingOutbox({ limit: 1 })
      await store.ackOutbox(1)
      await store.pendingSpawns()
      await store.ackSpawn(1)
      await store.dueTimers(9)
      await store.dueTimers(9, { after: { executionId: 'a', path: 'A', fireAt: 1.5 } })
      await store.readTrace('a')
      await store.listExecutions()
      await store.listExecutions({ status: 'DONE' })
      await store.idsWithPrefix('')
      await store.reindex()
      await store.publishDefinition({ id: 'D', version: '1', definition: 1 })
      await store.loadDefinition('D', '1')
      // One of Python, which is looked at in other ways.
      await admin.set('harel:exe:p', '{"id":"p","definition_id":"d","version":1}')
      await admin.zadd('harel:timers', 1, 'p\0P')
      await store.save(execution('p', { version: 1 }))
      await store.deleteTimer('a', 'P', 1.5)
      await store.purge('p', 2)
      await store.purge('a', 4)
    }
    await using store = await RedisStore.connect(address, { filterIndex: true })
    await useAll(store)
    for (const right of rights.filter((each) => each.startsWith('+') && !['+info', '+ping'].includes(each))) {
      await admin.flushall()
      await admin.script('FLUSH')
      await admin.call('acl', ['SETUSER', 'orders', right.replace('+', '-')])
      await using deprived = storeOn(clientFor(address), { prefix: 'harel', filterIndex: true })
      const error = await useAll(deprived).catch((reason: unknown) => reason)
      expect(error, right).toBeInstanceOf(StoreUnavailable)
      expect(error, right).toMatchObject({ retryable: false })
      // What scripts call is known before anything is written: nothing is left half done.
      if (String(error).includes(`lacks the rights ${right}`)) expect(await admin.dbsize()).toBe(0)
      else expect(String(error), right).toContain('NOPERM')
      await admin.call('acl', ['SETUSER', 'orders', right])
    }
  })

  test('keys of others cannot be touched with these rights (B35)', async () => {
    await using server = await startServer('redis', { own: true })
    await clientFor(server.url).call('acl', ['SETUSER', 'orders', 'on', '>password', '~harel:*', '+@all'])
    const client = clientFor(server.url.replace('redis://', 'redis://orders:password@'))
    await expect(storeOn(client, { prefix: 'other' }).save(execution('a'))).rejects.toThrow(/NOPERM/)
  })
})

test('the README fits on a screen, and names every option', () => {
  expect(readme.split('\n').length).toBeLessThan(85)
  for (const option of ['prefix', 'hashTag', 'traceMax', 'numbers', 'onWarning'])
    expect(readme).toContain(`\`${option}\``)
})
