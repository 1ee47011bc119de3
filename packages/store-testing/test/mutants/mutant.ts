import type { ExecutionStore, StoreCapabilities } from '@harel/store-base'
import { capabilities, type MemoryBackend, MemoryDatabase, type TransactionalStore } from '../memory-database.js'

/** A store in memory that is wrong in one way. */
export interface Mutant {
  /** What is wrong with it. */
  readonly name: string
  /** What it says of itself beside the usual. */
  readonly says?: Partial<StoreCapabilities>
  /** Breaks the backend of a handle. */
  readonly backend?: ((backend: MemoryBackend) => void) | undefined
  /** Gives methods that take the place of those of the store. */
  readonly store?: ((store: TransactionalStore) => Partial<TransactionalStore>) | undefined
  /** Opens handles in a way of its own. */
  readonly open?: (database: MemoryDatabase) => MemoryDatabase['open']
}

type Method = {
  [K in keyof MemoryBackend]: MemoryBackend[K] extends (...args: never[]) => unknown ? K : never
}[keyof MemoryBackend]

/** Replaces a method of a backend by one that may call the original. */
export function replace<K extends Method>(
  backend: MemoryBackend,
  name: K,
  make: (original: MemoryBackend[K]) => MemoryBackend[K],
): void {
  const original = backend[name] as (...args: unknown[]) => unknown
  Object.assign(backend, { [name]: make(original.bind(backend) as MemoryBackend[K]) })
}

/** A store of whose methods some are replaced. */
export function override<S extends ExecutionStore>(store: S, methods: Partial<S>): S {
  return new Proxy(store, {
    get(target, key) {
      if (key in methods) return Reflect.get(methods, key)
      const member: unknown = Reflect.get(target, key, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** A fresh database of wrong stores. */
export function openMutant({ says, backend, store, open: openOf }: Mutant) {
  const said = { ...capabilities, ...says }
  const database = new MemoryDatabase(said, backend)
  const open = openOf?.(database) ?? database.open
  return {
    capabilities: said,
    probes: database.probes,
    open: (options: Parameters<typeof open>[0]): ExecutionStore => {
      const opened = open(options)
      return store === undefined ? opened : override(opened, store(opened))
    },
  }
}

export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The first of these, as many as fit into a size. */
export function whileSmall<T>(items: readonly T[], sizeOf: (item: T) => number, most: number): T[] {
  let size = 0
  return items.filter((item) => {
    size += sizeOf(item)
    return size < most
  })
}

/** Which ids a SQL pattern finds, without case, as SQLite does it. */
export const like = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
      .replaceAll('%', '.*')
      .replaceAll('_', '.')}$`,
    'isu',
  )
