import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, inject, test, vi } from 'vitest'
import { findEngine } from '../src/engine.ts'
import { startServer } from '../src/index.ts'
import type { Provided } from '../src/setup.ts'

const folder = mkdtempSync(join(tmpdir(), 'harel-choice-'))
afterAll(() => rmSync(folder, { recursive: true }))
beforeEach(() => vi.stubEnv('CI', ''))
afterEach(() => vi.unstubAllEnvs())

const url = inject('server:redis').url ?? ''
const nowhere = `unix://${join(folder, 'no.sock')}`

test('the server that the environment names is taken as it is, and is not ours to kill', async () => {
  vi.stubEnv('HAREL_TEST_REDIS_URL', url)
  const server = await startServer('redis')
  expect(server).toMatchObject({ url, origin: 'environment', canRestart: false })
  expect(server.describe()).toMatch(/^redis \S+ from environment$/)
  await expect(server.kill()).rejects.toThrow('belongs to the environment')
  await server.stop()
  expect((await startServer('redis')).url).toBe(url)
})

test('a server of its own is never the one of the environment', async () => {
  vi.stubEnv('HAREL_TEST_REDIS_URL', url)
  await using server = await startServer('redis', { own: true })
  expect(server.url).not.toBe(url)
  await using configured = await startServer('redis', { config: { maxmemory: '50mb' } })
  expect(configured.url).not.toBe(url)
})

test('a flavour has variables of its own, and can be chosen by one', async () => {
  vi.stubEnv('HAREL_TEST_REDIS_URL', 'redis://127.0.0.1:1')
  vi.stubEnv('HAREL_TEST_REDIS_VALKEY9_URL', url)
  expect((await startServer('redis', { flavour: 'valkey9' })).url).toBe(url)
  vi.stubEnv('HAREL_TEST_REDIS_FLAVOUR', 'valkey9')
  expect((await startServer('redis')).url).toBe(url)
  vi.stubEnv('HAREL_TEST_REDIS_VALKEY9_URL', '')
  vi.stubEnv('HAREL_TEST_REDIS_URL', url)
  expect((await startServer('redis')).url).toBe(url)
  vi.stubEnv('HAREL_TEST_REDIS_FLAVOUR', 'redis3')
  await expect(startServer('redis')).rejects.toThrow("redis has no flavour 'redis3'; there are redis8, redis7, valkey9")
})

test('a server or an image that the environment names is not silently replaced', async () => {
  vi.stubEnv('HAREL_TEST_REDIS_URL', 'redis://127.0.0.1:1')
  await expect(startServer('redis')).rejects.toThrow(/environment names does not answer: .*ECONNREFUSED/)
  vi.stubEnv('HAREL_TEST_REDIS_URL', '')
  vi.stubEnv('HAREL_TEST_REDIS_IMAGE', 'redis:8')
  vi.stubEnv('DOCKER_HOST', nowhere)
  await expect(startServer('redis')).rejects.toThrow('no container engine answers to run redis:8')
})

test('an engine that is busy is waited for where the environment names an image', async () => {
  const socketPath = join(folder, 'busy.sock')
  const pings: string[] = []
  const engine = createHttpServer(({ url = '' }, response) => {
    pings.push(url)
    response.statusCode = url === '/_ping' ? 200 : 503
    setTimeout(() => response.end(), 500)
  }).listen(socketPath)
  vi.stubEnv('DOCKER_HOST', `unix://${socketPath}`)
  vi.stubEnv('HAREL_TEST_REDIS_IMAGE', 'redis:8')
  await expect(startServer('redis')).rejects.not.toThrow('no container engine answers')
  expect(pings).toContain('/_ping')
  engine.close()
})

test('without any server a run is told the reason, and fails where CI=true', async () => {
  vi.stubEnv('DOCKER_HOST', nowhere)
  vi.stubEnv('HAREL_TEST_REDIS_IMAGE', '')
  vi.stubEnv('PATH', folder)
  vi.stubEnv('HAREL_TEST_SERVERS_HOME', join(folder, 'empty'))
  vi.resetModules()
  const { serverSetup } = await import('../src/index.ts')
  const provided = new Map<string, Provided>()
  const project = { provide: (key: string, value: Provided) => void provided.set(key, value) }
  await serverSetup('redis')(project)
  expect(provided.get('server:redis')).toEqual({ reason: expect.stringMatching(/^no redis redis8: .* ENOENT$/) })
  vi.stubEnv('CI', 'true')
  await expect(serverSetup('redis')(project)).rejects.toThrow('no redis redis8')
})

test('an engine that does not answer at once is none', async () => {
  expect(await findEngine(nowhere)).toBeUndefined()

  const socketPath = join(folder, 'silent.sock')
  const silent = createServer().listen(socketPath)
  const begin = Date.now()
  expect(await findEngine(`unix://${socketPath}`)).toBeUndefined()
  expect(Date.now() - begin).toBeLessThan(600)
  silent.close()
})

test('an engine is found where DOCKER_HOST says', async () => {
  const socketPath = join(folder, 'docker.sock')
  const engine = createHttpServer((request, response) => {
    response.statusCode = request.url === '/_ping' ? 200 : 404
    response.end()
  }).listen(socketPath)
  vi.stubEnv('DOCKER_HOST', `unix://${socketPath}`)
  expect(await findEngine()).toEqual({ socketPath })
  engine.close()
})
