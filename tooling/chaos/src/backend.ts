import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenForFaults, UnderFaults } from '@harel/store-testing/faults'
import { type KindName, type StartOptions, startServer } from '@harel-tooling/test-servers'

/** A database that is there until it is disposed of, and a store on it. */
export interface Place extends AsyncDisposable {
  readonly under: UnderFaults
  /** For people. */
  describe(): string
}

export type Backend = () => Promise<Place>

/** By their names; loaded when wanted, for a backend brings its driver. */
export type Backends = Readonly<Record<string, () => Promise<Backend>>>

/** A store of files, with a file of its own. `program` is the module that opens it, for processes that write. */
export const onFile =
  (open: OpenForFaults, program?: string): Backend =>
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'harel-chaos-'))
    return {
      under: {
        capabilities: { shared: true },
        open,
        ...(program !== undefined && { program }),
        address: () => join(folder, 'harel.db'),
      },
      describe: () => 'a file',
      [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
    }
  }

/** A store on a server of its own. */
export const onServer =
  <K extends KindName>(
    kind: K,
    options: Omit<StartOptions<K>, 'own'>,
    under: Pick<UnderFaults, 'open' | 'speaks' | 'program'> & { forgets?: boolean },
  ): Backend =>
  async () => {
    const server = await startServer(kind, { ...options, own: true } as StartOptions<K>)
    const { forgets = false, ...known } = under
    return {
      under: {
        ...known,
        capabilities: { shared: true },
        address: () => server.url,
        ...(!forgets && { server: { kill: () => server.kill(), restart: () => server.restart() } }),
      },
      describe: () => server.describe(),
      [Symbol.asyncDispose]: () => server.stop(),
    }
  }
