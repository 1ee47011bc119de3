import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect } from 'vitest'
import type { TestServer } from '../src/index.ts'

/** What a driver does on a fresh server: `write` makes something that `read` gives back as 'kept'. */
export interface Probe {
  write(url: string): Promise<unknown>
  read(url: string): Promise<unknown>
}

/** The life of a server: it answers, is killed, comes back with its port and data, and leaves nothing behind. */
export async function expectToSurvive(server: TestServer, { write, read }: Probe): Promise<void> {
  const { url } = server
  await write(url)
  expect(await read(url)).toBe('kept')

  await server.kill()
  await expect(read(url)).rejects.toThrow()
  await server.restart()
  expect(await read(url)).toBe('kept')

  await server.stop()
  await expect(read(url)).rejects.toThrow()
  if (server.folder !== undefined) {
    expect(existsSync(server.folder)).toBe(false)
    expect(processes()).not.toContain(server.folder)
  }
  for (const node of server.nodes) expect(processes()).not.toContain(new URL(node.url).port)
}

export const processes = (): string => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
