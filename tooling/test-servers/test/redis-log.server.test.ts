import { globSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { startServer } from '../src/index.ts'

const WRITES = `for _, key in ipairs({ 'a', 'b' }) do redis.call('RPUSH', key, ARGV[1]) end`

test('a Redis whose log ends within a transaction carries no part of it out, at no later start', async ({ skip }) => {
  await using server = await startServer('redis', { own: true, flavour: 'redis8' })
  const { folder } = server
  if (folder === undefined) return skip('its log is in a container')
  const client = new Redis(server.url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  await client.eval(WRITES, 0, 'whole')
  await client.eval(WRITES, 0, 'half')
  await server.kill()
  const [log = ''] = globSync('**/*.incr.aof', { cwd: folder })
  const path = join(folder, log)
  // EXEC, and the end of what is before it.
  truncateSync(path, statSync(path).size - '*1\r\n$4\r\nEXEC\r\n'.length - 3)
  for (const value of ['next', 'last']) {
    await server.restart()
    await client.eval(WRITES, 0, value)
    await server.kill()
  }
  await server.restart()
  for (const key of ['a', 'b']) expect(await client.lrange(key, 0, -1)).toEqual(['whole', 'next', 'last'])
})
