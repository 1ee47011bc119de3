import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ServerProcess, type ServerProgram } from '../../src/faults/index.js'

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  listener.close()
  await once(listener, 'close')
  return port
}

/** A program that counts requests in a file, and what it answers. */
async function counter() {
  const folder = mkdtempSync(join(tmpdir(), 'harel-server-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'count'), '')
  const port = await freePort()
  const ask = async (method: 'GET' | 'POST'): Promise<{ count: number; child: number; greeting?: string }> => {
    const response = await fetch(`http://127.0.0.1:${port}`, { method, headers: { connection: 'close' } })
    return (await response.json()) as Awaited<ReturnType<typeof ask>>
  }
  const program: ServerProgram = {
    command: process.execPath,
    args: [join(import.meta.dirname, '../programs/counter-server.ts'), `${port}`, 'count'],
    cwd: folder,
    env: { GREETING: 'hello' },
    ready: () => ask('GET'),
  }
  return { program, ask }
}

const start = async (program: ServerProgram): Promise<ServerProcess> => {
  const server = await ServerProcess.start(program)
  onTestFinished(() => server.kill())
  return server
}

/** A program of Node's that serves nothing. */
const script = (code: string, patienceMs = 30_000): ServerProgram => ({
  command: process.execPath,
  args: ['-e', code],
  patienceMs,
  ready: () => Promise.reject(new Error('it does not answer')),
})

/** Whether there is such a process that is more than a name that its parent has not struck off yet. */
const isRunning = (pid: number): boolean => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' })
  return /^[^Z\s]/.test(stdout)
}

test('a server answers when it has been started, in its folder and with its environment', async () => {
  const { program, ask } = await counter()
  await start(program)
  expect(await ask('POST')).toMatchObject({ count: 1, greeting: 'hello' })
})

test('a server that is killed is gone, and its child with it, and serves again with its data when it is restarted', async () => {
  const { program, ask } = await counter()
  const server = await start(program)
  const { child } = await ask('POST')
  const { pid = 0 } = server
  expect([pid, child].filter(isRunning)).toEqual([pid, child])
  await server.kill()
  expect([pid, child].filter(isRunning)).toEqual([])
  await expect(ask('GET')).rejects.toThrow()
  await server.kill()
  await server.restart()
  expect(await ask('POST')).toMatchObject({ count: 2 })
})

test('a restart of a server that runs ends it first', async () => {
  const { program, ask } = await counter()
  const server = await start(program)
  const [{ pid = 0 }, { child }] = [server, await ask('POST')]
  await server.restart()
  expect([pid, child].filter(isRunning)).toEqual([])
  expect(await ask('POST')).toMatchObject({ count: 2 })
})

test('a server is gone when it has been disposed of', async () => {
  const { program, ask } = await counter()
  {
    await using _server = await ServerProcess.start(program)
    await ask('GET')
  }
  await expect(ask('GET')).rejects.toThrow()
})

test('a server that ends at its start is refused at once, with the end of its output', async () => {
  const failing = script(`console.log('x'.repeat(9000)); console.error('the disk is full'); process.exitCode = 1`)
  const error: Error = await ServerProcess.start(failing).then(
    () => expect.unreachable(),
    (thrown) => thrown,
  )
  expect(error.message).toMatch(/has ended instead of serving(?:.|\n)*the disk is full$/)
  expect(error.message.length).toBeLessThan(5000)
})

test('a server that does not answer in time is refused with the end of its output, and nothing is left of it', async () => {
  const silent = script(`console.log('I am ' + process.pid); setInterval(() => {}, 1000)`, 1000)
  for (const ready of [silent.ready, () => new Promise(() => {})]) {
    const error: Error = await ServerProcess.start({ ...silent, ready }).then(
      () => expect.unreachable(),
      (thrown) => thrown,
    )
    const [, pid] = /does not answer within 1 s(?:.|\n)*I am (\d+)$/.exec(error.message) ?? []
    expect(isRunning(Number(pid))).toBe(false)
  }
})

test('a command that there is not is refused by name', async () => {
  const missing: ServerProgram = { command: 'no-such-database', ready: async () => {} }
  await expect(ServerProcess.start(missing)).rejects.toThrow(/no-such-database has ended(?:.|\n)*ENOENT/)
})
