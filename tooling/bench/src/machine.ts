import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { percentile } from './measure.ts'

const PAGE = Buffer.alloc(4096, 1)

/** What the disk takes to make 4 kB durable, in milliseconds. */
function fsyncTimes(dir: string): number[] {
  const folder = mkdtempSync(join(dir, 'harel-bench-'))
  const file = openSync(join(folder, 'fsync'), 'w')
  const times: number[] = []
  try {
    for (let i = 0; i < 200; i++) {
      const start = performance.now()
      writeSync(file, PAGE)
      fdatasyncSync(file)
      times.push(performance.now() - start)
    }
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true })
  }
  return times
}

/** On what the numbers were measured. */
export function describeMachine(dir: string): string[] {
  const cores = cpus()
  const times = fsyncTimes(dir)
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
  // No disk syncs within a few microseconds: this is memory, or a disk that does not tell the truth.
  const doubt = p50 < 0.01 ? '; nothing is durable here, choose another folder with --dir' : ''
  return [
    `${cores[0]?.model.trim() ?? 'unknown processor'}, ${cores.length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    // More than there are cores: others were at work, and only ratios hold, those of short runs barely.
    `${type()} ${release()}, Node ${process.versions.node}, load average ${loadavg()[0]?.toFixed(1)} at the start`,
    `fsync of 4 kB in ${dir}: p50 ${p50.toFixed(3)} ms, p99 ${p99.toFixed(3)} ms${doubt}`,
  ]
}

/** A package that is measured, with its version. */
export function versionOf(name: string): string {
  const file = findPackageJSON(name, import.meta.url)
  if (file === undefined) throw new Error(`${name} is not installed`)
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return `${name} ${version}`
}
