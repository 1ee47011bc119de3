import { expect, test } from 'vitest'
import { withServer } from '../src/vitest.ts'
import { redis } from './probes.ts'

withServer('redis', ({ url, version }) => {
  test('the server of the setup serves the test files', async () => {
    await redis.write(url)
    expect(await redis.read(url)).toBe('kept')
    expect(version).toMatch(/^\d+\./)
  })
})
