import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { newPrefix, rows, run } from './helpers.js'

withServer('rqlite', ({ url }) => {
  test('ten processes may open an empty database at once (B42)', async () => {
    const prefix = newPrefix()
    await Promise.all(Array.from({ length: 10 }, (_, n) => run('open.ts', url, prefix, `e${n}`)))
    expect(await rows(url, prefix)).toEqual([10, 0, 0, 0, 0, 0])
  })
})
