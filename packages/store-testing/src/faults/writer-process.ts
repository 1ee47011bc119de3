import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { asyncStore } from '@harel/store-base'
import { type AnyStore, isSynchronous, type OpenOptions } from '../contract.js'
import type { Note } from './ledger.js'
import { PATIENCE_MS, settled } from './patience.js'
import { type StreamOptions, writeStream } from './stream.js'

/** How a store is opened under faults, at the address of its server, of a proxy in front of it, or of its file. */
export type OpenForFaults = (options: OpenOptions & { address?: string }) => AnyStore | Promise<AnyStore>

/** What a process that writes is told, as the argument behind its program. */
interface Orders extends StreamOptions {
  open: OpenOptions & { address?: string }
  /** It says that it is there, and opens the store when it is given leave. Default: false. */
  waits?: boolean
}

/** What a process says that is there and waits. */
const READY = 'ready'

/**
 * The whole program of a process that `assertSurvives` starts and kills: opens the store, writes, and says on its
 * standard output what it was told.
 */
export async function runWriter(open: OpenForFaults): Promise<void> {
  const orders: Orders = JSON.parse(process.argv[2] ?? '{}')
  if (orders.waits === true) {
    say(`${READY}\n`)
    for await (const _ of process.stdin);
  }
  const opened = await settled(Promise.resolve(open(orders.open)), 'opening', orders.patienceMs ?? PATIENCE_MS)
  await using store = isSynchronous(opened) ? asyncStore(opened) : opened
  await writeStream(store, (note) => say(`${JSON.stringify(note)}\n`), orders)
}

/** Synchronously: a note is out before the next step is begun. */
function say(line: string): void {
  const bytes = Buffer.from(line)
  for (let said = 0; said < bytes.length; ) {
    try {
      said += writeSync(1, bytes, said)
    } catch (error) {
      // Whoever reads is behind, and the pipe is full.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

/** A process that writes until it is done or killed. */
export class WriterProcess {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #ended: Promise<unknown>
  readonly #ready = Promise.withResolvers<void>()

  constructor(program: string | URL, orders: Orders, record: (note: Note) => void) {
    const path = typeof program === 'string' ? program : fileURLToPath(program)
    this.#process = spawn(process.execPath, [path, JSON.stringify(orders)], { stdio: ['pipe', 'pipe', 'inherit'] })
    // It may be gone when it is given leave.
    this.#process.stdin.on('error', () => {})
    const lines = createInterface(this.#process.stdout).on('line', (line) => {
      if (line === READY) this.#ready.resolve()
      // The last line of a killed process may be cut short.
      const note = parsed(line)
      if (note !== undefined) record(note)
    })
    this.#ended = Promise.all([once(this.#process, 'close'), once(lines, 'close')])
  }

  /** Resolves when it waits for leave, or has ended. Rejects when it has failed. */
  async ready(): Promise<void> {
    await Promise.race([this.#ready.promise, this.end()])
  }

  /** Gives leave to one that waits. */
  go(): void {
    this.#process.stdin.end()
  }

  /** Ends it with SIGKILL; resolves when it is gone and all that it said is recorded. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  /** Resolves when it has ended; with false when it was killed. Rejects when it has failed. */
  async end(): Promise<boolean> {
    await this.#ended
    const { exitCode, signalCode } = this.#process
    if (signalCode === 'SIGKILL') return false
    if (exitCode !== 0) throw new Error(`a writer has ended with ${exitCode ?? signalCode}`)
    return true
  }
}

function parsed(line: string): Note | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
