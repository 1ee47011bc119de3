import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { MongoStore } from '@harel/store-mongo'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, expect, test } from 'vitest'
import { connect, everything, execution, newPrefix, useDatabase } from './helpers.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const blocks = (language: string): string[] =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(([, code = '']) => code)

test('the README fits on a screen, names every option, and points at nothing that is missing', () => {
  expect(readme.split('\n').length).toBeLessThan(90)
  const options = ['prefix', 'createIndexes', 'dedupe', 'traceMax', 'numbers', 'onWarning']
  for (const option of options) expect(readme).toContain(`\`${option}\``)
  const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
  expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
})

withServer('mongo', (server) => {
  const database = useDatabase(server)
  // Inside the package, because that is where the package is found; as something built, so that nobody else minds.
  const folder = mkdtempSync(join(root, 'dist', 'readme-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const run = (...args: string[]) => {
    const env = { ...process.env, MONGO_URL: database.url }
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }

  test('the snippets of the README compile and do what they say', { timeout: 120_000 }, async () => {
    const name = new URL(database.url).pathname.slice(1)
    for (const [n, code] of blocks('ts').entries()) {
      writeFileSync(join(folder, `snippet${n}.ts`), code.replaceAll("'shop'", `'${name}'`))
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
    const tsc = join(root, '../../node_modules/typescript/bin/tsc')
    expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
    expect(run('snippet0.ts')).toEqual({ status: 0, output: 'PLACED for billing\n' })
    expect(run('snippet1.ts')).toEqual({ status: 0, output: "[ 'order-1' ]\n" })
    expect(await database.db().collection('orders').countDocuments()).toBe(1)
  })

  // The substitute keeps no users, so that what the role lacks is found by comparison with what is asked of the server.
  test('the role of the README allows every command that a store sends, and nothing else (B43)', async () => {
    type Role = { privileges: { resource: { collection: string }; actions: string[] }[] }
    const roles: Role[] = []
    runInNewContext(blocks('js').join(), {
      db: { getSiblingDB: () => ({ createRole: (role: Role) => roles.push(role) }) },
    })
    const privileges = roles.flatMap((role) => [...role.privileges])
    const allowed = privileges.flatMap(({ resource, actions }) =>
      actions.map((each) => `${resource.collection} ${each}`),
    )

    const client = connect(database.url, { monitorCommands: true })
    const used = new Set<string>()
    const needs: Record<string, (command: Record<string, unknown>) => string[]> = {
      find: () => ['find'],
      getMore: () => ['find'],
      // A sort, or an update by its filter, reads with the right to find.
      update: ({ updates }) => ['update', ...(JSON.stringify(updates).includes('"upsert":true') ? ['insert'] : [])],
      delete: () => ['remove'],
      findAndModify: ({ remove }) => ['find', ...(remove ? ['remove'] : ['update', 'insert'])],
      createIndexes: () => ['createIndex'],
      listIndexes: () => ['listIndexes'],
    }
    client.on('commandStarted', ({ commandName, command }) => {
      if (commandName === 'endSessions') return
      for (const action of needs[commandName]?.(command) ?? [commandName]) {
        used.add(`${command[commandName]} ${action}`)
      }
    })
    const prefix = newPrefix()
    const store = new MongoStore(client.db(), { prefix })
    const held = execution('a')
    const [seq = 0] = await store.commit(held, everything('a'))
    await store.commit(held, everything('b'))
    await store.loadForEvent('a', 'a-event')
    await store.appendTrace('b', { n: 1 })
    await Promise.all([store.pendingOutbox(), store.pendingSpawns(), store.dueTimers(9), store.readTrace('a')])
    await Promise.all([store.ackOutbox(seq), store.ackSpawn(1), store.deleteTimer('a', 'P', 1)])
    await Promise.all([store.listExecutions({ status: 'DONE' }), store.idsWithPrefix('')])
    await store.publishDefinition({ id: 'd', version: '1', definition: {} })
    await store.purge('a', 2)
    const wanted = [...used].map((each) => each.replace(`${prefix}_`, 'harel_'))
    expect(wanted.sort()).toEqual(allowed.sort())
  })
})
