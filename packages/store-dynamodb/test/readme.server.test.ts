import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, expect, test } from 'vitest'
import { emitsOf, everything, execution } from './commits.js'
import { clientFor, credentials, storeOn } from './database.js'
import { Intermediary } from './intermediary.js'
import { putItem, pythonItem } from './python.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const block = (language: string): string =>
  new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(readme)?.[1] ?? ''

test('the README fits on a screen, names every option, and points at nothing that is missing', () => {
  expect(readme.split('\n').length).toBeLessThan(95)
  for (const option of ['prefix', 'createSchema', 'gsi', 'traceMax', 'numbers', 'onWarning']) {
    expect(readme).toContain(`\`${option}\``)
  }
  const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
  expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
})

/** The actions of IAM that a request needs. Source: "Actions, resources, and condition keys for Amazon DynamoDB". */
function actionsOf({ operation, body }: { operation: string; body: string }): string[] {
  if (!operation.startsWith('Transact')) return [operation]
  const { TransactItems } = JSON.parse(body) as { TransactItems: Record<string, unknown>[] }
  return TransactItems.flatMap(Object.keys).map((kind) =>
    kind === 'ConditionCheck' ? 'ConditionCheckItem' : `${kind}Item`,
  )
}

withServer('dynamodb', ({ url }) => {
  // Inside the package, because that is where the package is found; as something built, so that nobody else minds.
  const folder = mkdtempSync(join(root, 'dist', 'readme-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('the snippet of the README compiles and does what it says', { timeout: 120_000 }, async () => {
    writeFileSync(join(folder, 'snippet.ts'), block('ts'))
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
    const tables = storeOn(clientFor(url), { prefix: 'harel' })
    await tables.ackOutbox((await tables.pendingOutbox()).map(({ seq }) => seq))
    const run = (...args: string[]) => {
      const env = {
        ...process.env,
        AWS_ENDPOINT_URL_DYNAMODB: url,
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      }
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
      return { status, output: stdout + stderr }
    }
    const tsc = join(root, '../../node_modules/typescript/bin/tsc')
    expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
    expect(run('snippet.ts')).toEqual({ status: 0, output: 'PLACED for billing\n' })
  })

  test('the actions that the README lists are all that are needed, on tables of the prefix alone, and none is too many (B43)', async () => {
    const way = await Intermediary.to(url)
    const client = clientFor(way.url)
    const prefix = `r_${Math.random().toString(36).slice(2)}`
    for (const gsi of [false, true]) {
      const store = storeOn(client, { prefix, gsi })
      const held = execution('a')
      for (let n = 0; n < 3; n++) await store.commit(held, { ...everything('a'), processedEventId: `e${n}` })
      await store.commit(held, { emits: emitsOf('a', 98) })
      await store.commit(execution('b'), { emits: emitsOf('c', 98) })
      await store.commit(execution('c'), { emits: emitsOf('c', 98) })
      await store.commit(execution('d'), { emits: emitsOf('c', 98) })
      await store.appendTrace('a', {})
      await store.load('a')
      await store.loadForEvent('a', 'e1')
      await store.isProcessed('a', 'e1')
      for (let n = 0; n < 2; n++) await store.pendingOutbox({ limit: 2 })
      await store.ackOutbox([1, 2])
      await store.ackSpawn([1])
      await store.dueTimers(9)
      await store.deleteTimer('a', 'P', 1.5)
      await store.readTrace('a')
      await store.publishDefinition({ id: 'd', version: '1', definition: 1 })
      await store.idsWithPrefix('')
      if (!gsi) await putItem(clientFor(url), `${prefix}_executions`, pythonItem('p', 1))
      await store.listExecutions()
      for (const [id, version] of [
        ['a', 4],
        ['b', 1],
        ['c', 1],
        ['d', 1],
        ['p', 1],
      ] as const)
        expect(await store.purge(id, version)).toBe(id !== 'p' || !gsi)
    }
    const used = [...new Set(way.requests.flatMap(actionsOf))].map((action) => `dynamodb:${action}`)
    const [statement] = JSON.parse(block('json')).Statement
    expect(used.sort()).toEqual(statement.Action.toSorted())
    const allowed = new RegExp(`^${/table\/(.*)\*/.exec(statement.Resource[0])?.[1]?.replace('harel', prefix)}`)
    const named = way.requests.flatMap(({ body }) =>
      [...body.matchAll(/"TableName":"([^"]+)"/g)].map(([, name]) => name),
    )
    expect(named.length).toBeGreaterThan(100)
    expect(named.filter((name) => !allowed.test(name ?? ''))).toEqual([])
  })
})
