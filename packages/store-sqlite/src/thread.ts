import module from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import {
  InvalidArgument,
  OutcomeUnknown,
  type StoreCapabilities,
  StoreClosed,
  StoreUnavailable,
} from '@harel/store-base'
import { type Call, fromWireError, type Opened, type Reply, type WorkerSettings } from './messages.js'
import { claimPath } from './open-file.js'
import source from './worker.js?source'

interface Waiting {
  readonly writes: boolean
  resolve(value: unknown): void
  reject(error: Error): void
}

/** The file of better-sqlite3: beside this module, or beside the program into which this module was bundled. */
function driverFile(): string {
  const places = [import.meta.url, process.argv[1], pathToFileURL(`${process.cwd()}/`).href]
  for (const place of places) {
    try {
      // Not imported by name: webpack would take that call for its own and return the number of a module.
      if (place !== undefined) return module.createRequire(place).resolve('better-sqlite3')
    } catch {
      // Not there: the next place.
    }
  }
  throw new StoreUnavailable('the package better-sqlite3 was not found; install it beside the program')
}

/** Whether a call may have written something when no answer came. What stands in a transaction needs its commit. */
const mayHaveWritten = (target: Call['target'], method: string): boolean =>
  target === 'store'
    ? !/^(load|isProcessed|pending|due|readTrace|list|ids|close)/.test(method)
    : target === 'transaction' && method === 'commit'

/** @param onExit called when the thread has ended, or has not started */
function spawn(workerData: WorkerSettings, onExit: () => void): Worker {
  try {
    // Without the options of this process, which may say that evaluated code is a module.
    return new Worker(source, { eval: true, execArgv: [], workerData }).once('exit', onExit)
  } catch (cause) {
    onExit()
    throw new StoreUnavailable('the thread of the store could not start', cause)
  }
}

/** The worker thread of a store. It does not keep the process alive but while it has something to do. */
export class Thread {
  readonly capabilities: StoreCapabilities
  readonly warnings: readonly string[]
  readonly #worker: Worker
  readonly #release: () => void
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  /** What calls are answered with once the thread has ended. */
  #ended: Error | undefined

  private constructor(
    worker: Worker,
    { capabilities, warnings }: Exclude<Opened, { error: unknown }>,
    release: () => void,
  ) {
    this.#worker = worker
    this.#release = release
    this.capabilities = capabilities
    this.warnings = warnings
    worker.on('message', (reply: Reply) => this.#settle(reply))
    worker.on('error', (error) => this.#die(error))
    worker.on('exit', (code) => this.#die(new Error(`the thread ended with code ${code}`)))
    worker.unref()
  }

  static async start(settings: Omit<WorkerSettings, 'driver'>): Promise<Thread> {
    const workerData: WorkerSettings = { ...settings, driver: driverFile() }
    // Here, because the thread has another list of who has which file open.
    const release = claimPath(settings.path)
    const worker = spawn(workerData, release)
    const opened = await new Promise<Opened>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', (cause) => reject(new StoreUnavailable('the thread of the store could not start', cause)))
    })
    if ('error' in opened) {
      await worker.terminate()
      throw fromWireError(opened.error)
    }
    return new Thread(worker, opened, release)
  }

  get alive(): boolean {
    return this.#ended === undefined
  }

  call(target: Call['target'], method: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(this.#ended)
        return
      }
      if (this.#waiting.size === 0) this.#worker.ref()
      const id = ++this.#lastId
      this.#waiting.set(id, { writes: mayHaveWritten(target, method), resolve, reject })
      try {
        this.#worker.postMessage({ id, target, method, args } satisfies Call)
      } catch (error) {
        // Only a caller's own statement can hold what no thread can be sent.
        this.#take(id)
        reject(
          new InvalidArgument('params', error, 'values that SQLite can hold', 'one that cannot be sent to a thread'),
        )
      }
    })
  }

  async close(): Promise<void> {
    if (!this.alive) return
    const closed = this.call('store', 'close', [])
    this.#ended = new StoreClosed()
    await closed
    this.#release()
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#worker.unref()
    return waiting
  }

  #settle(reply: Reply): void {
    const waiting = this.#take(reply.id)
    if ('error' in reply) waiting?.reject(fromWireError(reply.error))
    else waiting?.resolve(reply.value)
  }

  #die(cause: Error): void {
    this.#ended ??= new StoreUnavailable('the thread of the store has ended', cause)
    for (const { writes, reject } of this.#waiting.values()) {
      const reason = 'the thread of the store ended during this call'
      reject(writes ? new OutcomeUnknown(reason, cause) : new StoreUnavailable(reason, cause))
    }
    this.#waiting.clear()
  }
}
