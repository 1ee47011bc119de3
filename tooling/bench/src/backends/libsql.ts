/** LibsqlStore on a file beside batches by hand, all on one client, each durable (synchronous FULL). */
import { join } from 'node:path'
import { LibsqlStore } from '@harel/store-libsql'
import { createClient } from '@libsql/client'
import { type Goal, measureCommits } from '../commits.ts'
import { versionOf } from '../machine.ts'
import type { Backend, Measure } from '../settings.ts'
import { commitOf, nextEventId, turns } from '../workload.ts'
import { sharedBatches, singleBatches } from './libsql-by-hand.ts'
import { fill, inFolder } from './sqlite-database.ts'

/** Enough that all concurrent commits are of different executions. */
const FEW = 4096

type Variant = 'LibsqlStore' | 'batch by hand' | 'shared batches by hand'

const GOALS: readonly Goal<Variant>[] = [
  { at: 1, variant: 'LibsqlStore', beside: 'batch by hand', target: { max: 1.3 } },
  { at: 256, variant: 'LibsqlStore', beside: 'shared batches by hand', target: { min: 0.85 } },
]

const commit: Measure = {
  name: 'libsql-commit',
  run: (settings, onProgress) =>
    inFolder(settings.dir, async (folder) => {
      // In WAL mode.
      const { path, subjects } = fill(join(folder, 'bench.db'), FEW)
      const client = createClient({ url: `file:${path}` })
      const store = new LibsqlStore(client)
      const [batch, share, next] = [singleBatches(client), sharedBatches(client), turns(subjects)]
      try {
        const variants: Record<Variant, () => Promise<unknown>> = {
          LibsqlStore: () => store.commit(...commitOf(next(), nextEventId())),
          'batch by hand': () => batch(next()),
          'shared batches by hand': () => share(next()),
        }
        return await measureCommits('libsql', variants, GOALS, settings, onProgress)
      } finally {
        await store.close()
        client.close()
      }
    }),
}

export const libsql: Backend = {
  measures: [commit],
  describe: (dir) =>
    inFolder(dir, async (folder) => {
      const client = createClient({ url: `file:${fill(join(folder, 'bench.db'), 1).path}` })
      try {
        const { rows } = await client.execute(
          'SELECT sqlite_version() AS version, journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous',
        )
        const [row] = rows
        const level = ['OFF', 'NORMAL', 'FULL', 'EXTRA'][Number(row?.synchronous)]
        const journal = String(row?.journal_mode).toUpperCase()
        const version = versionOf('@libsql/client')
        return [`${version}, SQLite ${row?.version}, journal ${journal}, synchronous ${level} for all`]
      } finally {
        client.close()
      }
    }),
}
