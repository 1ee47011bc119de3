import {
  CommitTooLarge,
  type Execution,
  type ExecutionStore,
  InvalidArgument,
  NotSerializable,
} from '@harel/store-base'
import type { MemoryBackend } from '../memory-database.js'
import { type Mutant, replace, whileSmall } from './mutant.js'

/** Changes every text on its way into the database. */
const texts = (change: (text: string) => string) => (backend: MemoryBackend) => {
  replace(backend, 'writeExecution', (write) => (commit) => write({ ...commit, data: change(commit.data) }))
  replace(
    backend,
    'writeCompanions',
    (write) => (commit) =>
      write({
        ...commit,
        emits: commit.emits.map((emit) => ({ ...emit, event: change(emit.event) })),
        spawns: commit.spawns.map((spawn) => ({ ...spawn, context: change(spawn.context) })),
      }),
  )
  replace(backend, 'appendTrace', (append) => (id, entry) => append(id, change(entry)))
  replace(backend, 'publishDefinition', (publish) => (row) => publish({ ...row, definition: change(row.definition) }))
}

/** Changes every value inside the texts. */
const values = (change: (value: unknown) => unknown) =>
  texts((text) => JSON.stringify(JSON.parse(text, (_key, value: unknown) => change(value))))

/** Changes what the caller has given before it is checked. */
const input =
  (change: <T>(value: T) => T) =>
  (store: ExecutionStore): Partial<ExecutionStore> => ({
    async commit(execution, changes) {
      const own: Execution = { ...change(execution), version: execution.version }
      const seqs = await store.commit(own, changes && change(changes))
      execution.version = own.version
      return seqs
    },
    appendTrace: async (id, step) => store.appendTrace(id, change(step)),
    publishDefinition: async (record) => store.publishDefinition(change(record)),
  })

const throughJson = <T>(value: T): T => {
  try {
    return JSON.parse(JSON.stringify(value)) as T
  } catch {
    return value
  }
}

/** Copies as many libraries do: member by member, by assignment. */
const byAssignment = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((member: unknown) => byAssignment(member)) as T
  const copy: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value)) copy[key] = byAssignment(member)
  return copy as T
}

const depthOf = (value: unknown, most = 300): number =>
  typeof value !== 'object' || value === null || most === 0
    ? 0
    : 1 + Math.max(0, ...Object.values(value).map((member) => depthOf(member, most - 1)))

/** Refuses more than it should. */
const refuse = (isBad: (value: unknown) => boolean) =>
  input((value) => {
    if (isBad(value)) throw new NotSerializable('context', 'is too much')
    return value
  })

const some = (value: unknown, is: (value: unknown) => boolean, most = 8): boolean =>
  is(value) ||
  (most > 0 &&
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).some((member) => some(member, is, most - 1)))

/** Keeps ids otherwise than they are given. */
const ids = (change: (id: string) => string) => (backend: MemoryBackend) => {
  replace(backend, 'commit', (commit) => (given) => commit({ ...given, id: change(given.id) }))
  for (const method of ['load', 'readTrace'] as const) {
    replace(backend, method, (read) => ((id: string) => (read as (id: string) => unknown)(change(id))) as never)
  }
}

/** Answers a call that must be refused as if nothing were wrong. */
const forgive =
  (kind: abstract new (...args: never[]) => Error) =>
  (store: ExecutionStore): Partial<ExecutionStore> =>
    Object.fromEntries(
      (
        [
          ...[
            'load',
            'loadForEvent',
            'isProcessed',
            'readTrace',
            'appendTrace',
            'idsWithPrefix',
            'loadDefinition',
            'purge',
          ],
          ...['commit', 'save', 'ackOutbox', 'ackSpawn', 'dueTimers', 'deleteTimer', 'pendingOutbox', 'pendingSpawns'],
          ...['listExecutions', 'publishDefinition'],
        ] as (keyof ExecutionStore)[]
      ).map((name) => [
        name,
        async (...args: unknown[]) => {
          try {
            return await (store[name] as (...args: unknown[]) => Promise<unknown>)(...args)
          } catch (error) {
            if (error instanceof kind) return undefined
            throw error
          }
        },
      ]),
    )

/** Stores large texts in part. */
const sizes = (change: (data: string) => string) => (backend: MemoryBackend) => {
  replace(backend, 'writeExecution', (write) => (commit) => write({ ...commit, data: change(commit.data) }))
}

const cut = (most: number) =>
  sizes((data) => data.replace(/"text":"[^"]*"/, (member) => (member.length > most ? '"text":""' : member)))

/** Takes the limits away, which are looked at before a backend is asked. */
function unlimited(backend: MemoryBackend): void {
  backend.capabilities = { ...backend.capabilities, maxCommitWrites: Infinity, maxExecutionBytes: Infinity }
}

export const valueMutants: readonly Mutant[] = [
  { name: 'drops U+0000', backend: texts((text) => text.replaceAll('\\u0000', '')) },
  { name: 'composes texts', backend: texts((text) => text.normalize('NFC')) },
  {
    name: 'takes texts that look like numbers for numbers',
    backend: values((value) => (value === '42' ? 42 : value)),
  },
  {
    name: 'unescapes a marker of its own',
    backend: values((value) => (typeof value === 'string' ? value.replace(/^:/, '') : value)),
  },
  { name: 'writes an empty list as an object', backend: texts((text) => text.replaceAll('[]', '{}')) },
  {
    name: 'writes an empty list in a step as an object',
    backend(backend) {
      replace(backend, 'appendTrace', (append) => (id, entry) => append(id, entry.replaceAll('[]', '{}')))
    },
  },
  { name: 'drops members that are null', backend: texts((text) => text.replaceAll(/"n":null,?/g, '')) },
  {
    name: 'keeps numbers to fifteen digits',
    backend: values((value) => (typeof value === 'number' ? Number(value.toPrecision(15)) : value)),
  },
  {
    name: 'sorts members by their keys',
    backend: texts((text) =>
      JSON.stringify(
        JSON.parse(text, (_key, value: unknown) =>
          typeof value === 'object' && value !== null && !Array.isArray(value)
            ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
            : value,
        ),
      ),
    ),
  },
  { name: 'stringifies before it checks', store: input(throughJson) },
  { name: 'copies members by assignment', store: input(byAssignment) },
  {
    name: 'mends half a surrogate pair',
    store: input((value) =>
      some(value, (text) => typeof text === 'string' && !text.isWellFormed())
        ? JSON.parse(JSON.stringify(value).replace(/\\ud[89a-f]../g, '\ufffd'))
        : value,
    ),
  },
  {
    name: 'takes the text of an escape for half a pair',
    store: refuse((value) => some(value, (text) => typeof text === 'string' && /\\u[dD][89a-fA-F]/.test(text))),
  },
  {
    name: 'refuses members that are undefined',
    store: refuse((value) => some(value, (member) => member === undefined, 12) && depthOf(value) < 12),
  },
  {
    name: 'refuses objects without a prototype',
    store: refuse((value) =>
      some(value, (member) => typeof member === 'object' && member !== null && Object.getPrototypeOf(member) === null),
    ),
  },
  { name: 'nests a hundred levels', store: refuse((value) => depthOf(value) > 100) },
  { name: 'stores nothing where it should refuse a value', store: forgive(NotSerializable) },
  { name: 'escapes what it has escaped', backend: texts((text) => text.replaceAll('::', ':::')) },
  { name: 'cuts a context of 390 KiB', backend: cut(395_000) },
  {
    name: 'cuts a context of 420,000 bytes',
    backend: sizes((data) => data.replaceAll(/😀{100000,}/gu, '')),
  },
  { name: 'cuts a context of more than 400 KiB', backend: cut(405_000) },
  { name: 'cuts a context of more than a megabyte', backend: cut(1_100_000) },
  { name: 'cuts a context of 17 MiB', says: { maxExecutionBytes: 1e9 }, backend: cut(17_000_000) },
  {
    name: 'stores an execution larger than it promises',
    backend: unlimited,
  },
  {
    name: 'keeps ten thousand keys',
    backend: sizes((data) =>
      data.length < 600_000 || data.includes('xxxx') ? data : data.replace(/,"k+19999":19999/, ''),
    ),
  },
  {
    name: 'measures a commit when half of it is written',
    backend(backend) {
      const limited = Object.create(backend, { capabilities: { value: backend.capabilities } }) as MemoryBackend
      unlimited(backend)
      replace(backend, 'writeCompanions', (write) => (commit) => {
        const seqs = write(commit)
        limited.measure(commit)
        return seqs
      })
    },
  },
  {
    name: 'refuses fewer writes than it promises',
    backend(backend) {
      replace(backend, 'measure', (measure) => (commit) => {
        if (commit.emits.length > 98 || commit.spawns.length > 98) throw new CommitTooLarge('writes', 99, 98)
        measure(commit)
      })
    },
  },
  {
    name: 'stores four megabytes of events',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => {
        return write({ ...commit, emits: whileSmall(commit.emits, ({ event }) => event.length, 4_000_000) })
      })
    },
  },
]

export const idMutants: readonly Mutant[] = [
  { name: 'compares ids without case', backend: ids((id) => id.toLowerCase()) },
  { name: 'trims ids', backend: ids((id) => id.trim() || id) },
  { name: 'composes ids', backend: ids((id) => id.normalize('NFC')) },
  {
    name: 'takes ids for numbers',
    backend: ids((id) => (/^\d+(e\d+)?$/.test(id) ? String(Number(id)) : id)),
  },
  { name: 'cuts ids off', backend: ids((id) => id.slice(0, 1000)) },
  {
    name: 'has ids that collide with its own names',
    backend(backend) {
      replace(backend, 'readTrace', (read) => (id) => read(id.replace(/seq:/, '')))
      replace(backend, 'appendTrace', (append) => (id, entry) => append(id.replace(/seq:/, ''), entry))
    },
  },
  {
    name: 'joins an id and what belongs to it with a colon',
    backend(backend) {
      const marks = new Set<string>()
      backend.mark = (id, eventId) => void marks.add(`${id}:${eventId}`)
      backend.isProcessed = (id, eventId) => marks.has(`${id}:${eventId}`)
    },
  },
  {
    name: 'drops NUL from ids',
    store: (store) => ({
      load: (id) => store.load(typeof id === 'string' ? id.replaceAll('\0', '') : id),
      purge: (id, version) => store.purge(id.replaceAll('\0', ''), version),
    }),
  },
  {
    name: 'needs a root path',
    store: (store) => ({
      async commit(execution, changes) {
        if (changes?.spawns?.some(({ rootPath }) => rootPath === ''))
          throw new InvalidArgument('rootPath', '', 'a path')
        return store.commit(execution, changes)
      },
    }),
  },
]

export const argumentMutants: readonly Mutant[] = [
  { name: 'answers wrong calls with nothing', store: forgive(InvalidArgument) },
  {
    name: 'does not say which argument is wrong',
    store: (store) => ({
      load: (id) =>
        store
          .load(id)
          .catch((error: unknown) =>
            Promise.reject(error instanceof InvalidArgument ? new InvalidArgument('argument', id, 'right') : error),
          ),
    }),
  },
  {
    name: 'lets out what an argument throws when it is read',
    store: (store) => ({
      commit: (execution, changes) =>
        store
          .commit(execution, changes)
          .catch((error: unknown) => Promise.reject(error instanceof InvalidArgument ? (error.cause ?? error) : error)),
    }),
  },
  {
    name: 'throws where it should reject',
    store: (store) => ({
      load(id) {
        if (typeof id !== 'string') throw new InvalidArgument('id', id, 'a string')
        return store.load(id)
      },
    }),
  },
  {
    name: 'takes limits of less than a thousand',
    store: (store) => ({
      async pendingOutbox(page) {
        if (page?.limit === 1000) throw new InvalidArgument('page.limit', 1000, 'less')
        return store.pendingOutbox(page)
      },
    }),
  },
  {
    name: 'does not know CANCELLING',
    store: (store) => ({
      async commit(execution, changes) {
        if (execution.status === 'CANCELLING') throw new InvalidArgument('execution.status', execution.status, 'known')
        return store.commit(execution, changes)
      },
    }),
  },
]
