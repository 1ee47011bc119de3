import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { claim, ownerOf } from './claim.ts'
import { familyOf, isAlive, kill, self, untilGone } from './identity.ts'

// What runs on this machine leaves here: a folder for each server and a link for each port, both named by their owner,
// so that a later run can tell what a dead one has left and runs beside each other never meet.
const base = join(tmpdir(), `harel-test-servers-${process.getuid?.() ?? 0}`)
const ports = join(base, 'ports')

export function newFolder(kind: string): string {
  mkdirSync(base, { recursive: true, mode: 0o755 })
  return mkdtempSync(join(base, `${self}.${kind}.`))
}

export function removeFolder(folder: string): void {
  // A killed server's children may write for a moment longer.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
}

/** Notes in the server's folder which process serves from it. */
export function recordProcess(folder: string, id: string): void {
  appendFileSync(join(folder, 'processes'), `${id}\n`)
}

/** Ends the servers of runs that have died, and removes their folders and ports. */
export async function removeLeftovers(): Promise<void> {
  for (const name of list(base)) {
    const owner = name.split('.', 1)[0] ?? ''
    if (!/^\d+-/.test(owner) || isAlive(owner)) continue
    const folder = join(base, name)
    const family = recorded(folder).flatMap(familyOf)
    kill(family)
    await untilGone(family)
    removeFolder(folder)
  }
  for (const port of list(ports)) {
    if (!isAlive(ownerOf(join(ports, port)))) rmSync(join(ports, port), { force: true })
  }
}

/**
 * A loopback port that nobody uses, kept for this process until `releasePort`, also while no server listens on it.
 * Below the range from which systems give ports to outgoing connections: one of those could take it during a restart.
 */
export async function claimPort(): Promise<number> {
  mkdirSync(ports, { recursive: true, mode: 0o755 })
  for (;;) {
    // Redis Cluster listens on the port 10,000 above as well.
    const port = 15_000 + Math.floor(Math.random() * 7_000)
    if (!claim(join(ports, String(port)))) continue
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port
    releasePort(port)
  }
}

export function releasePort(port: number): void {
  rmSync(join(ports, String(port)), { force: true })
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

function recorded(folder: string): string[] {
  try {
    return readFileSync(join(folder, 'processes'), 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
