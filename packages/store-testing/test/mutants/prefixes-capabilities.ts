import { InvalidPrefix, newExecution } from '@harel/store-base'
import { MemoryDatabase, Tables } from '../memory-database.js'
import { type Mutant, override, tick } from './mutant.js'

/**
 * Takes what follows its prefix in a key for an argument of this method, so that `2x` under `harel` is `x` under
 * `harel2`; `between` is what else stands in the key.
 */
const runsInto = (
  method: 'load' | 'loadForEvent' | 'isProcessed' | 'readTrace' | 'loadDefinition' | 'deleteTimer' | 'purge',
  argument: 'first' | 'second' = 'first',
  between = '',
): Mutant => ({
  name: `runs into a longer prefix by the ${argument} argument of ${method}, behind '${between}'`,
  open: (database) => {
    const prefixes = new Set<string>()
    const index = argument === 'first' ? 0 : 1
    return (options) => {
      prefixes.add(options.prefix)
      const store = database.open(options)
      const call = (on: object, args: readonly unknown[]): unknown => Reflect.apply(Reflect.get(on, method), on, args)
      return override(store, {
        [method]: async (...args: unknown[]) => {
          const text = String(args[index])
          for (const prefix of prefixes) {
            const rest = prefix.slice(options.prefix.length) + between
            if (prefix === options.prefix || !`${options.prefix}${text}`.startsWith(`${prefix}${between}`)) continue
            if (text === rest) continue
            return call(database.open({ ...options, prefix }), args.with(index, text.slice(rest.length)))
          }
          return call(store, args)
        },
      })
    }
  },
})

export const prefixMutants: readonly Mutant[] = [
  {
    name: 'ignores the prefix',
    open: (database) => (options) => database.open({ ...options, prefix: 'harel' }),
  },
  {
    name: 'cuts long prefixes off',
    open: (database) => (options) => database.open({ ...options, prefix: options.prefix.slice(0, 29) }),
  },
  {
    name: 'takes any prefix',
    open: (database) => (options) =>
      database.open({ ...options, prefix: options.prefix.replace(/\W|^\d/g, '_').slice(0, 30) || '_' }),
  },
  {
    name: 'trims a prefix',
    open: (database) => (options) => database.open({ ...options, prefix: options.prefix.trim() }),
  },
  {
    name: 'makes tables before it refuses a prefix',
    open: (database) => (options) => {
      database.tables(options.prefix.replace(/\W/g, '_'))
      return database.open(options)
    },
  },
  {
    name: 'does not say which prefixes are allowed',
    open: (database) => (options) => {
      try {
        return database.open(options)
      } catch (error) {
        throw Object.assign(new InvalidPrefix(options.prefix), { message: 'invalid prefix', cause: error })
      }
    },
  },
  {
    name: 'looks prefixes up among the members of an object',
    open: (database) => (options) =>
      database.open({ ...options, prefix: options.prefix in {} ? 'harel' : options.prefix }),
  },
  {
    name: 'does not open twice under a word of its query language',
    open: (database) => {
      const opened = new Set<string>()
      return (options) => {
        if (options.prefix === 'select' && opened.has(options.prefix)) throw new InvalidPrefix(options.prefix)
        opened.add(options.prefix)
        return database.open(options)
      }
    },
  },
  {
    name: 'acknowledges under every prefix',
    open: (database) => {
      const prefixes = new Set<string>()
      return (options) => {
        prefixes.add(options.prefix)
        const store = database.open(options)
        const ack = store.ackOutbox.bind(store)
        store.ackOutbox = async (seqs) => {
          await ack(seqs)
          for (const prefix of prefixes) for (const seq of [seqs].flat()) database.tables(prefix).outbox.delete(seq)
        }
        return store
      }
    },
  },
  runsInto('load'),
  runsInto('load', 'first', ':executions:'),
  runsInto('load', 'first', '_'),
  runsInto('loadForEvent'),
  runsInto('loadForEvent', 'second'),
  runsInto('isProcessed'),
  runsInto('isProcessed', 'second'),
  runsInto('readTrace'),
  runsInto('loadDefinition'),
  runsInto('loadDefinition', 'second'),
  runsInto('deleteTimer'),
  runsInto('deleteTimer', 'second'),
  runsInto('purge'),
  {
    name: 'writes into a longer prefix',
    open: (database) => {
      const prefixes = new Set<string>()
      return (options) => {
        prefixes.add(options.prefix)
        const store = database.open(options)
        return override(store, {
          async commit(execution, changes) {
            const key = options.prefix + execution.id
            const prefix = [...prefixes].find((other) => other !== options.prefix && key.startsWith(other))
            if (prefix === undefined) return store.commit(execution, changes)
            const id = key.slice(prefix.length)
            const seqs = await database.open({ ...options, prefix }).commit({ ...execution, id }, changes)
            execution.version++
            return seqs
          },
        })
      }
    },
  },
]

/** What `given` says, without its being so. */
const liar = (name: string, says: Mutant['says'], rest: Partial<Mutant> = {}): Mutant => ({
  name,
  ...(says && { says }),
  ...rest,
})

export const capabilityMutants: readonly Mutant[] = [
  {
    ...liar('has other capabilities than were announced', {}),
    store: (store) => ({ capabilities: { ...store.capabilities, ordered: false } }),
  },
  {
    ...liar('says that it loads the object itself, and loads copies', { identity: true }),
    store: (store) => ({ load: async (id) => structuredClone(await store.load(id)) }),
  },
  {
    ...liar('says that it loads copies, and loads the object itself', {}),
    open: () =>
      new MemoryDatabase({ ...new MemoryDatabase().open({ prefix: 'harel' }).capabilities, identity: true }).open,
  },
  liar('says that nobody shares its database', { shared: false }),
  liar(
    'says that it is durable, and shares nothing',
    { shared: false, durable: true },
    { open: () => (options) => new MemoryDatabase().open(options) },
  ),
  { ...liar('says that it has transactions', {}), store: () => ({ transaction: undefined }) as object },
  liar(
    'says that it has no transactions',
    { transactions: false },
    { store: () => ({ transaction: (work) => work(new MemoryDatabase().open({ prefix: 'harel' }), new Tables()) }) },
  ),
  {
    ...liar('says that it keeps the object itself, and keeps a copy', { identity: true }),
    store: (store) => ({
      async commit(execution, changes) {
        const own = structuredClone(execution)
        const seqs = await store.commit(own, changes)
        execution.version = own.version
        return seqs
      },
    }),
  },
  liar('has capabilities that are none', { dedupe: 0 }),
  {
    ...liar('loses every tenth commit', {}),
    store(store) {
      let count = 0
      return {
        async commit(execution, changes) {
          if (++count % 10 !== 0) return store.commit(execution, changes)
          const seqs = await store.commit(newExecution({ definitionId: execution.definitionId }), changes)
          await tick()
          execution.version++
          return seqs
        },
      }
    },
  },
]
