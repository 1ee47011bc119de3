import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { newPrefix, open, rows, run, start } from './helpers.js'
import { expectAcknowledged, expectWhole } from './written.js'

withServer('rqlite', ({ url }) => {
  test('ten processes may open an empty database at once (B42)', async () => {
    const prefix = newPrefix()
    await Promise.all(Array.from({ length: 10 }, (_, n) => run('open.ts', url, prefix, `e${n}`)))
    expect(await rows(url, prefix)).toEqual([10, 0, 0, 0, 0, 0])
  })

  test('processes that share an execution lose and repeat nothing', async () => {
    const prefix = newPrefix()
    const rounds = 8
    await Promise.all(['a', 'b', 'c'].map((name) => run('writer.ts', url, prefix, name, `${rounds}`)))
    const versions = await expectWhole(await open(url, { prefix }), url, prefix)
    expect(versions.get('shared')).toBe(3 * 4 * (rounds - 1))
    versions.delete('shared')
    expect([...versions.values()]).toEqual(Array(3 * 4).fill(rounds))
  })

  test('a process that is killed has lost no acknowledged commit, and left none half done', async () => {
    const prefix = newPrefix()
    const acknowledged: string[] = []
    for (let round = 0; round < 3; round++) {
      const writer = start('writer.ts', url, prefix, 'w', '0')
      let printed = ''
      writer.stdout.setEncoding('utf8').on('data', (text) => {
        printed += text
      })
      await once(writer.stdout, 'data')
      await sleep(20 + Math.random() * 250)
      writer.kill('SIGKILL')
      await once(writer, 'close')
      acknowledged.push(...printed.split('\n').slice(0, -1))
      expectAcknowledged(await expectWhole(await open(url, { prefix }), url, prefix), acknowledged)
    }
    expect(acknowledged.length).toBeGreaterThan(3)
  })
})
