/** The thread of an `AsyncSqliteStore`: opens the database and answers calls, one after the other. */
import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import type { Sql } from '@harel/store-base/sql'
import type BetterSqlite3 from 'better-sqlite3'
import type { Statement } from 'better-sqlite3'
import { SqliteBackend } from './backend.js'
import { toStoreError } from './connection.js'
import { type Call, type Opened, type Reply, toWireError, type WorkerSettings } from './messages.js'
import { openFile } from './open-file.js'
import { OpenTransaction } from './transaction.js'

const { path, driver, ...settings } = workerData as WorkerSettings
const port = parentPort as NonNullable<typeof parentPort>

type Procedures = Record<string, (...args: never[]) => unknown>

function open(): (call: Call) => unknown {
  const Driver = createRequire(driver)(driver) as typeof BetterSqlite3
  const connection = openFile(Driver, path, settings.lockTimeout)
  const warnings: string[] = []
  const backend = SqliteBackend.open(connection, settings, (warning) => warnings.push(warning))
  let open: OpenTransaction | undefined
  // Errors of the caller's own statements stay what they are, as on a connection of his own.
  const statement =
    <T>(use: (statement: Statement, params: Sql['params']) => T) =>
    ({ sql, params }: Sql) =>
      open?.inside(() => use(connection.db.prepare(sql), params))
  const transaction = {
    begin: () => {
      open = new OpenTransaction(connection, backend)
    },
    commit: () => open?.commit(),
    rollback: () => open?.rollback(),
    run: statement((prepared, params) => prepared.run(...params)),
    get: statement((prepared, params) => prepared.get(...params)),
    all: statement((prepared, params) => prepared.all(...params)),
  }
  port.postMessage({ capabilities: backend.capabilities, warnings } satisfies Opened)
  return ({ target, method, args }) => {
    const receiver = { store: backend, within: open?.backend, transaction }[target] as unknown as Procedures
    return receiver[method]?.(...(args as never[]))
  }
}

try {
  const answer = open()
  port.on('message', (call: Call) => {
    const { id, target, method } = call
    try {
      port.postMessage({ id, value: answer(call) } satisfies Reply)
      if (target === 'store' && method === 'close') port.close()
    } catch (error) {
      port.postMessage({ id, error: toWireError(error) } satisfies Reply)
    }
  })
} catch (error) {
  port.postMessage({ error: toWireError(toStoreError(error)) } satisfies Opened)
}
