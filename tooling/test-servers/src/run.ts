import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { atExit } from './exit.ts'
import { claimPort, newFolder, releasePort, removeFolder } from './leftovers.ts'
import { type Program, ServerProcess } from './process.ts'

/** What one server holds on this machine: a folder, ports, processes. `close` gives all of it back, and so does the end of this process. */
export class Run {
  readonly folder: string
  readonly #ports: number[] = []
  readonly #processes: ServerProcess[] = []
  readonly #forget: () => void

  constructor(kind: string) {
    this.folder = newFolder(kind)
    this.#forget = atExit(() => {
      for (const process of this.#processes) process.discardNow()
      this.#giveBack()
    })
  }

  /** A new folder for the data of one process. */
  dataDir(name: string): string {
    const folder = join(this.folder, `${name}.data`)
    mkdirSync(folder)
    return folder
  }

  async port(): Promise<number> {
    const port = await claimPort()
    this.#ports.push(port)
    return port
  }

  /** Starts a server process; resolves when it answers. */
  async launch(program: Program): Promise<ServerProcess> {
    const process = new ServerProcess(this.folder, program)
    this.#processes.push(process)
    await process.start()
    return process
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.discard()))
    this.#giveBack()
    this.#forget()
  }

  #giveBack(): void {
    removeFolder(this.folder)
    for (const port of this.#ports) releasePort(port)
  }
}
