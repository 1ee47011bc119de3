import { inspect } from 'node:util'
import { InvalidArgument, type RqliteOptions, RqliteStore, SchemaMissing, StoreError } from '@harel/store-rqlite'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { everything, execution, failure, newPrefix, open } from './helpers.js'
import { Intermediary, reply } from './intermediary.js'

const PASSWORD = 'S3cr3t!pw:ü@/%'

const withCredentials = (url: string, username: string, password: string) =>
  url.replace('://', `://${encodeURIComponent(username)}:${encodeURIComponent(password)}@`)

/** All that somebody may see of a value in a log. */
const shown = (value: unknown): string =>
  `${inspect(value, { depth: 9, showHidden: true })} ${JSON.stringify(value)} ${(value as Error).stack}`

describe('an argument that is no good is refused before anything is sent, and shown without secrets (B102)', () => {
  test.each<[string, unknown]>([
    ['no URL', []],
    ['a word', `harel:${PASSWORD}`],
    ['another protocol', `postgres://harel:${encodeURIComponent(PASSWORD)}@localhost/db`],
    ['a port that is none', withCredentials('http://localhost:99999', 'harel', PASSWORD)],
    ['a password that is not encoded', 'http://harel:S3cr3t!pw%@localhost:4001'],
    ['a query', `${withCredentials('http://localhost:4001', 'harel', PASSWORD)}/?level=none`],
    ['a hash', `${withCredentials('http://localhost:4001', 'harel', PASSWORD)}/#db`],
    ['one bad of two', ['http://localhost:4001', `http//harel:${PASSWORD}`]],
    ['nothing', undefined],
    ['a number', 4001],
  ])('URL: %s', (_, urls) => {
    const create = () => new RqliteStore(urls as string)
    expect(create).toThrow(InvalidArgument)
    expect(create).toThrow(expect.objectContaining({ argument: 'urls' }))
    try {
      create()
    } catch (error) {
      expect(shown(error)).not.toContain('S3cr3t')
    }
  })

  test.each<[keyof RqliteOptions, unknown]>([
    ['username', 5],
    ['username', ''],
    ['username', 'a:b'],
    ['password', 5],
    ['password', 'S3cr3t'],
    ['level', 'weak'],
    ['level', 'none'],
    ['timeout', 0],
    ['timeout', Number.POSITIVE_INFINITY],
    ['timeout', 2 ** 31],
    ['failoverTimeout', -1],
    ['createSchema', 'no'],
    ['groupCommit', 1],
    ['traceMax', 1.5],
  ])('%s: %j', (option, value) => {
    const create = () => new RqliteStore('http://127.0.0.1:1', { [option]: value })
    expect(create).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: option }))
    expect(create).not.toThrow('S3cr3t')
  })
})

// A server of its own: nobody but its owner says who may do what.
withServer('rqlite', () => {
  let server: TestServer
  const user = (username: string, ...perms: string[]) => ({ username, password: PASSWORD, perms })
  beforeAll(async () => {
    const users = [user('admin', 'all'), user('app', 'query', 'execute'), user('reader', 'query')]
    server = await startServer('rqlite', { own: true, users })
  })
  afterAll(() => server.stop())

  test('a server with users is used with the name and the password of the options, or of the URL (weakness 56)', async () => {
    const prefix = newPrefix()
    const stores = [
      await open(withCredentials(server.url, 'app', PASSWORD), { prefix }),
      await open(server.url, { prefix, username: 'app', password: PASSWORD }),
      // The options go before the URL.
      await open(withCredentials(server.url, 'somebody', 'else'), { prefix, username: 'app', password: PASSWORD }),
    ]
    for (const [n, store] of stores.entries()) await store.commit(execution(`e${n}`), everything(`e${n}`))
    expect(await stores[0]?.idsWithPrefix('')).toEqual(['e0', 'e1', 'e2'])
  })

  test('a server with users gives each node of several the credentials of its own URL, and no other', async () => {
    const other = await Intermediary.start(server.url)
    other.fates.push(reply(401, ''))
    const urls = [other.url, withCredentials(server.url, 'app', PASSWORD)]
    await expect(RqliteStore.connect(urls, { prefix: newPrefix() })).rejects.toMatchObject({ retryable: false })
    expect(other.requests).toHaveLength(1)
    await open(urls.toReversed(), { prefix: newPrefix() })
  })

  test.each<[string, Partial<RqliteOptions>, (url: string) => string]>([
    ['no password', {}, (url) => url],
    ['a wrong password', { username: 'app', password: `${PASSWORD}-wrong` }, (url) => url],
    ['a wrong password in the URL', {}, (url) => withCredentials(url, 'app', `${PASSWORD}-wrong`)],
    ['an unknown user', { username: 'nobody', password: PASSWORD }, (url) => url],
  ])(
    'a server with users refuses %s at once, with an error that is not retryable and shows no secret',
    async (_, options, urlOf) => {
      const between = await Intermediary.start(server.url)
      const store = new RqliteStore(urlOf(between.url), { ...options, prefix: newPrefix() })
      const context = { canary: 'CANARY-42' }
      const calls = [RqliteStore.connect(urlOf(between.url), options), store.commit(execution('a', { context }))]
      for (const error of await Promise.all(calls.map(failure))) {
        expect(error).toBeInstanceOf(StoreError)
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
        expect(String(error)).toContain('401')
        expect(shown(error)).not.toMatch(/S3cr3t|UzNjcjN0|CANARY|Basic/)
      }
      expect(between.requests).toHaveLength(2)
      expect(shown(store)).not.toMatch(/S3cr3t|Basic/)
    },
  )

  test('a server with users lets a user who may only query read, and refuses his writes', async () => {
    const prefix = newPrefix()
    const reader = { prefix, username: 'reader', password: PASSWORD }
    const missing = RqliteStore.connect(server.url, { ...reader, createSchema: false })
    await expect(missing).rejects.toBeInstanceOf(SchemaMissing)
    await expect(RqliteStore.connect(server.url, reader)).rejects.toMatchObject({ retryable: false })
    const writer = await open(server.url, { prefix, username: 'app', password: PASSWORD })
    await writer.commit(execution('a'))
    const store = await open(server.url, { ...reader, createSchema: false })
    expect((await store.load('a'))?.version).toBe(1)
    await expect(store.commit(execution('b'))).rejects.toMatchObject({ retryable: false })
    expect(await writer.idsWithPrefix('')).toEqual(['a'])
  })
})
