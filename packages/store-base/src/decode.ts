/**
 * The JSON texts that stand in the database to records. What Python harel 0.9.0 accepts is accepted here, what it
 * refuses is a `CorruptRecord`.
 */
import { isStatus } from './arguments.js'
import { canonicalDatetime } from './datetime.js'
import { bracketed } from './describe.js'
import { CorruptRecord } from './errors.js'
import { hasLoneSurrogate, MAX_NESTING, type Parsed, parseJson } from './json.js'
import { noteRounded, type ReadOptions } from './numbers.js'
import { type ChildState, type Execution, type HarelEvent, type JsonObject, newId, STATUSES } from './records.js'
import { noteUnknownFields } from './unknown-fields.js'

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads the members of one stored object as leniently as Python does, and says which one it refuses. */
class Fields {
  readonly #record: string
  readonly #where: string
  readonly #members: JsonObject

  constructor(record: string, where: string, members: JsonObject) {
    this.#record = record
    this.#where = where
    this.#members = members
  }

  #refuse(key: string, wanted: string): never {
    const value = this.#members[key]
    // The value may be anything that a user stored, so only its type is told.
    const found = value === undefined ? 'missing' : value === null ? 'null' : `of type ${typeof value}`
    throw new CorruptRecord(this.#record, `${this.#where}${key} must be ${wanted}; it is ${found}`)
  }

  has(key: string): boolean {
    return this.#members[key] !== undefined
  }

  string(key: string, absent?: string): string {
    const value = this.#members[key] ?? (this.has(key) ? null : absent)
    return typeof value === 'string' ? value : this.#refuse(key, 'a string')
  }

  nullableString(key: string): string | null {
    const value = this.#members[key] ?? null
    return value === null || typeof value === 'string' ? value : this.#refuse(key, 'a string or null')
  }

  integer(key: string, absent = 0): number {
    return integerOf(this.has(key) ? this.#members[key] : absent) ?? this.#refuse(key, 'an integer')
  }

  nullableNumber(key: string): number | null {
    const value = this.#members[key] ?? null
    return value === null ? null : (numberOf(value) ?? this.#refuse(key, 'a number or null'))
  }

  boolean(key: string): boolean {
    return booleanOf(this.#members[key] ?? (this.has(key) ? null : false)) ?? this.#refuse(key, 'true or false')
  }

  object(key: string): JsonObject {
    const value = this.has(key) ? this.#members[key] : {}
    return isObject(value) ? value : this.#refuse(key, 'an object')
  }

  /** An object whose members are read by `read`. */
  map<T>(key: string, read: (value: unknown, key: string) => T): Record<string, T> {
    const entries = Object.entries(this.object(key))
    if (entries.length === 0) return {}
    return Object.fromEntries(entries.map(([name, value]) => [name, read(value, name)]))
  }

  list<T>(key: string, read: (value: unknown, index: number) => T): T[] {
    const value = this.has(key) ? this.#members[key] : []
    return Array.isArray(value) ? value.map(read) : this.#refuse(key, 'an array')
  }

  nullableDatetime(key: string): string | null {
    const value = this.#members[key] ?? null
    return value === null ? null : (canonicalDatetime(value) ?? this.#refuse(key, 'a date and time, or null'))
  }

  inside(key: string, value: unknown): Fields {
    const where = `${this.#where}${key}`
    if (!isObject(value)) throw new CorruptRecord(this.#record, `${where} must be an object`)
    return new Fields(this.#record, `${where}.`, value)
  }
}

const numericText = /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/

const numberOf = (value: unknown): number | undefined => {
  if (typeof value === 'number') return value
  if (typeof value === 'boolean') return Number(value)
  return typeof value === 'string' && numericText.test(value) ? Number(value) : undefined
}

const integralText = /^\s*[+-]?\d+(\.0+)?\s*$/

const integerOf = (value: unknown): number | undefined => {
  // To Python `"3.0"` is an integer, `"3e0"` is none.
  const number = typeof value !== 'string' || integralText.test(value) ? numberOf(value) : undefined
  return number !== undefined && Number.isInteger(number) ? number : undefined
}

const truths: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ...[true, 1, '1', 'true', 't', 'yes', 'y', 'on'].map((value) => [value, true] as const),
  ...[false, 0, '0', 'false', 'f', 'no', 'n', 'off'].map((value) => [value, false] as const),
])

const booleanOf = (value: unknown): boolean | undefined =>
  truths.get(typeof value === 'string' ? value.toLowerCase() : value)

function parseRecord(text: string, record: string, wire: 'payload' | 'context'): Parsed {
  let parsed: Parsed
  try {
    parsed = parseJson(text)
  } catch {
    throw new CorruptRecord(record, 'its text is not JSON')
  }
  // Payloads are parsed by pydantic, which is stricter than the `json` module that parses the other texts.
  if (wire === 'payload') {
    if (hasLoneSurrogate(text)) throw new CorruptRecord(record, 'it has a lone surrogate')
    if (parsed.deep) throw new CorruptRecord(record, `it is nested deeper than ${MAX_NESTING} levels`)
  }
  return parsed
}

const readEvent = (fields: Fields): HarelEvent => ({
  id: fields.has('id') ? fields.string('id') : newId(),
  kind: fields.string('kind'),
  createdTime: fields.nullableDatetime('created_time'),
  receivedTime: fields.nullableDatetime('received_time'),
  data: fields.object('data'),
})

const readChild = (fields: Fields): ChildState => ({
  rootPath: fields.string('root_path'),
  finished: fields.boolean('finished'),
  outcome: fields.nullableString('outcome'),
  result: fields.object('result'),
  submachine: fields.boolean('submachine'),
  key: fields.string('key', ''),
})

/** The members of a payload; the token of a commit is no business of the next one. */
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  'version',
  'commit_token',
  'id',
  'definition_id',
  'definition_fqn',
  'root_path',
  'status',
  'outcome',
  'error',
  'active_path',
  'processed_events',
  'priority',
  'parent_id',
  'child_id',
  'created_at',
  'updated_at',
  'finished_at',
  'expires_at',
  'history',
  'context',
  'deferred',
  'children',
  'invoke_seq',
])

/**
 * An execution from its payload.
 *
 * @param id the id under which it is stored; a payload without one has this, a payload with another is corrupt
 * @throws CorruptRecord for what Python refuses too
 */
export function decodeExecution(text: string, id?: string, options: ReadOptions = {}): Execution {
  const record = `execution ${JSON.stringify(id ?? 'without id')}`
  const { value, lossy } = parseRecord(text, record, 'payload')
  if (!isObject(value)) throw new CorruptRecord(record, 'its text is not a JSON object')
  const fields = new Fields(record, '', value)
  const status = fields.string('status', 'PENDING')
  if (!isStatus(status)) throw new CorruptRecord(record, `status must be one of ${STATUSES.join(', ')}`)
  const priority = fields.integer('priority')
  if (priority < 0 || priority > 4) throw new CorruptRecord(record, 'priority must be from 0 to 4')
  const execution: Execution = {
    id: fields.string('id', id ?? newId()),
    definitionId: fields.string('definition_id'),
    definitionFqn: fields.nullableString('definition_fqn'),
    rootPath: fields.string('root_path', ''),
    status,
    outcome: fields.nullableString('outcome'),
    error: fields.nullableString('error'),
    activePath: fields.nullableString('active_path'),
    history: fields.object('history'),
    context: fields.object('context'),
    processedEvents: fields.integer('processed_events'),
    version: fields.integer('version'),
    priority,
    parentId: fields.nullableString('parent_id'),
    childId: fields.nullableString('child_id'),
    deferred: fields.list('deferred', (event, index) => readEvent(fields.inside(`deferred[${index}]`, event))),
    children: fields.map('children', (child, key) => readChild(fields.inside(`children${bracketed(key)}`, child))),
    invokeSeq: fields.map('invoke_seq', (seq, path) => {
      const count = integerOf(seq)
      if (count === undefined) throw new CorruptRecord(record, `invoke_seq${bracketed(path)} must be an integer`)
      return count
    }),
    createdAt: fields.nullableNumber('created_at'),
    updatedAt: fields.nullableNumber('updated_at'),
    finishedAt: fields.nullableNumber('finished_at'),
    expiresAt: fields.nullableNumber('expires_at'),
  }
  if (id !== undefined && execution.id !== id) throw new CorruptRecord(record, 'its payload has another id')
  noteUnknownFields(execution, value, KNOWN_FIELDS)
  noteRounded(lossy, record, options, [
    execution,
    execution.context,
    ...execution.deferred.flatMap((event) => [event, event.data]),
  ])
  return execution
}

/** An event from its stored text. @throws CorruptRecord */
export function decodeEvent(text: string, record = 'event', options: ReadOptions = {}): HarelEvent {
  const { value, lossy } = parseRecord(text, record, 'payload')
  if (!isObject(value)) throw new CorruptRecord(record, 'its text is not a JSON object')
  const event = readEvent(new Fields(record, '', value))
  noteRounded(lossy, record, options, [event, event.data])
  return event
}

/** A spawn's context, a trace step or a definition from its stored text. @throws CorruptRecord */
export function decodeJson(text: string, record: string, options: ReadOptions = {}): unknown {
  const { value, lossy } = parseRecord(text, record, 'context')
  noteRounded(lossy, record, options, typeof value === 'object' && value !== null ? [value] : [])
  return value
}

/** As `decodeJson`, for what must be an object. @throws CorruptRecord */
export function decodeObject(text: string, record: string, options: ReadOptions = {}): JsonObject {
  const value = decodeJson(text, record, options)
  if (!isObject(value)) throw new CorruptRecord(record, 'its text is not a JSON object')
  return value
}
