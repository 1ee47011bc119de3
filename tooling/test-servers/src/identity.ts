import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

interface Facts {
  readonly pid: number
  readonly parent: number
  readonly state: string
  readonly started: string
}

const hasProc = existsSync('/proc/self/stat')

/**
 * Names one process for good: its id and its start time, so that another process that got the same id later is not
 * taken for it. Undefined when no such process runs; one that has ended and was not yet collected does not run.
 */
export function identity(pid: number): string | undefined {
  const facts = read(pid)
  return facts === undefined || /^[ZX]/.test(facts.state) ? undefined : nameOf(facts)
}

const nameOf = ({ pid, started }: Facts): string => `${pid}-${started}`

export const isAlive = (id: string): boolean => identity(pidOf(id)) === id

const pidOf = (id: string): number => Number(id.split('-', 1)[0])

export const self: string = identity(process.pid) ?? `${process.pid}-0`

/** A process and those that it started itself; none when it is gone. */
export function familyOf(id: string): string[] {
  if (!isAlive(id)) return []
  const children = readAll().filter(({ parent }) => parent === pidOf(id))
  return [id, ...children.map(nameOf)]
}

/** Ends with SIGKILL those of them that still run. */
export function kill(ids: readonly string[]): void {
  for (const id of ids) {
    try {
      if (isAlive(id)) process.kill(pidOf(id), 'SIGKILL')
    } catch {
      // Gone in between.
    }
  }
}

export async function untilGone(ids: readonly string[]): Promise<void> {
  while (ids.some(isAlive)) await delay(10)
}

/** `untilGone` for where nothing can be awaited: this thread stands still. */
export function waitUntilGone(id: string, timeoutMs: number): void {
  const tick = new Int32Array(new SharedArrayBuffer(4))
  for (const begin = Date.now(); isAlive(id) && Date.now() - begin < timeoutMs; ) Atomics.wait(tick, 0, 0, 10)
}

function readAll(): Facts[] {
  if (!hasProc) return fromPs('-A')
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (fromProc(Number(name)) ?? []) : []))
}

function read(pid: number): Facts | undefined {
  return hasProc ? fromProc(pid) : fromPs('-p', String(pid))[0]
}

function fromProc(pid: number): Facts | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name stands in parentheses and may hold anything, so count from its end.
    const [state = '', parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(parent), state, started: rest[17] ?? '' }
  } catch {
    return undefined
  }
}

function fromPs(...which: string[]): Facts[] {
  try {
    const columns = ['-o', 'pid=,ppid=,stat=,lstart=']
    const lines = execFileSync('ps', [...columns, ...which], { encoding: 'utf8', stdio: 'pipe' })
      .trim()
      .split('\n')
    return lines.map((line) => {
      const [pid, parent, state = '', ...started] = line.trim().split(/\s+/)
      return { pid: Number(pid), parent: Number(parent), state, started: started.join('_') }
    })
  } catch {
    return []
  }
}
