import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import postgres from 'postgres'
import { expect, test } from 'vitest'
import { startServer } from '../src/index.ts'

test('postgres keeps its port and its data through SIGKILL, and leaves nothing behind', {
  timeout: 60_000,
}, async () => {
  const server = await startServer('postgres', { own: true })
  expect(server.describe()).toMatch(/^postgres 1\d\.\d+ from (container|registry package)$/)
  const sql = postgres(server.url, { max: 1, onnotice: () => {} })
  await sql`create table kept (n int)`
  await sql`insert into kept values (1)`
  await server.kill()
  await expect(sql`select 1`).rejects.toThrow()
  await server.restart()
  expect(await sql`select n from kept`).toEqual([{ n: 1 }])
  await sql.end()
  await server.stop()
  await expect(postgres(server.url, { max: 1 })`select 1`).rejects.toThrow('ECONNREFUSED')
  if (server.folder === undefined) return
  expect(existsSync(server.folder)).toBe(false)
  expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(server.folder)
})
