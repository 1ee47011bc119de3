import { StoreUnavailable } from '@harel/store-base'
import type { TransactionSql } from 'postgres'
import { isBroken, isReadOnly } from './client.js'
import { untilClosed } from './pause.js'
import type { Pool } from './pool.js'

type Work<T> = (tx: TransactionSql) => Promise<T>

/** The connection of a transaction. */
interface Connection {
  broken: boolean
}

/**
 * `sql.begin`, for a connection that may break meanwhile. Whoever uses it then makes the driver (3.4) write to a socket
 * that is no more, and that error ends the process. So the handle is guarded, and the driver, which would roll back, is
 * left waiting: it has rejected the transaction already.
 *
 * @param options behind `BEGIN`
 */
export async function begin<T>(pool: Pool, work: Work<T>, options = ''): Promise<T> {
  const source = pool.transactions
  const sql = await source.handle()
  const connection = { broken: false }
  let working = true
  const begun = Promise.withResolvers<void>()
  const { transaction } = await source.gate.pass(async () => {
    const transaction = sql.begin(options, async (tx) => {
      begun.resolve()
      try {
        return await lasting(connection, work)(tx)
      } finally {
        working = false
      }
    }) as Promise<T>
    transaction.catch((error: unknown) => {
      connection.broken = working
      if (working || isBroken(error) || isReadOnly(error)) source.broke(sql)
    })
    await Promise.race([begun.promise, transaction])
    return { transaction }
  })
  return transaction
}

/** Work that does not come to an end when the connection has broken. */
const lasting =
  <T>(connection: Connection, work: Work<T>): Work<T> =>
  async (tx) => {
    try {
      return await work(guarded(connection, tx))
    } finally {
      // The driver rejects statements first, and the transaction when the socket is closed.
      await untilClosed()
      if (connection.broken) await new Promise<never>(() => {})
    }
  }

/** The handle, of no use when the connection has broken. */
function guarded(connection: Connection, tx: TransactionSql): TransactionSql {
  const check = () => {
    if (connection.broken) throw new StoreUnavailable('the connection to PostgreSQL broke, and with it the transaction')
  }
  return new Proxy(tx, {
    apply(target, self, args) {
      check()
      return Reflect.apply(target, self, args)
    },
    get(target, key) {
      check()
      if (key !== 'savepoint') return Reflect.get(target, key)
      return (...args: [name: string, work: Work<unknown>] | [work: Work<unknown>]) => {
        const [name, work] = args.length === 1 ? [undefined, args[0]] : args
        const savepoint = lasting(connection, work)
        return name === undefined ? target.savepoint(savepoint) : target.savepoint(name, savepoint)
      }
    },
  })
}
