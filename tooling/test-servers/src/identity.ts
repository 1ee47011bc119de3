import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/**
 * Names one process for good: its id and its start time, so that another process that got the same id later is not
 * taken for it. Undefined when no such process runs; one that has ended and was not yet collected does not run.
 */
export function identity(pid: number): string | undefined {
  const facts = existsSync('/proc/self/stat') ? fromProc(pid) : fromPs(pid)
  if (facts === undefined || /^[ZX]/.test(facts.state)) return undefined
  return `${pid}-${facts.started}`
}

export const isAlive = (id: string): boolean => identity(pidOf(id)) === id

export const pidOf = (id: string): number => Number(id.split('-', 1)[0])

export const self: string = identity(process.pid) ?? `${process.pid}-0`

function fromProc(pid: number): { state: string; started: string } | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The program's name stands in parentheses and may hold anything, so count from its end: field 3 is the state, 22 the start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0] ?? 'X', started: fields[19] ?? '0' }
}

function fromPs(pid: number): { state: string; started: string } | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' })
    const [state = 'X', ...started] = line.trim().split(/\s+/)
    return { state, started: started.join('_') }
  } catch {
    return undefined
  }
}
