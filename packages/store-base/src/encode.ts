/**
 * Records to the JSON texts that stand in the database: snake_case, all fields present, `context` and `data` as they
 * are. Python harel 0.9.0 reads what is written here.
 */
import {
  checkArray,
  checkFlag,
  checkInteger,
  checkKey,
  checkKeyOrEmpty,
  checkKeyOrNull,
  checkObject,
  checkPlain,
  checkStatus,
  checkTime,
} from './arguments.js'
import { canonicalDatetime } from './datetime.js'
import { bracketed } from './describe.js'
import { InvalidArgument } from './errors.js'
import { toJson, validateSerializable } from './json.js'
import { type Numbers, refuseRounded } from './numbers.js'
import type { Execution, HarelEvent, JsonObject } from './records.js'
import { unknownFieldsOf } from './unknown-fields.js'

const nullableString = (argument: string, value: unknown): string | null => {
  if (value !== null && typeof value !== 'string') throw new InvalidArgument(argument, value, 'a string or null')
  return value
}

const string = (argument: string, value: unknown): string => {
  if (typeof value !== 'string') throw new InvalidArgument(argument, value, 'a string')
  return value
}

const nullableTime = (argument: string, value: unknown): number | null =>
  value === null ? null : checkTime(argument, value)

const count = (argument: string, value: unknown): number => checkInteger(argument, value, 0, Number.MAX_SAFE_INTEGER)

/** @param enclosing how many containers the object will stand in */
const data = (argument: string, value: unknown, enclosing: number, numbers: Numbers): JsonObject => {
  checkObject(argument, value)
  validateSerializable(value, argument, { enclosing, numbers })
  return value as JsonObject
}

const nullableDatetime = (argument: string, value: unknown): string | null => {
  if (value === null) return null
  const text = typeof value === 'string' ? canonicalDatetime(value) : undefined
  if (text === undefined) throw new InvalidArgument(argument, value, 'an ISO 8601 date and time, or null')
  return text
}

/** An event as it is stored: each of its members is read once. */
export const wireEvent = (argument: string, value: unknown, enclosing: number, numbers: Numbers) => {
  const event = checkObject(argument, value)
  const { data: given } = event
  if (numbers === 'exact') refuseRounded(argument, event, given)
  return {
    id: checkKey(`${argument}.id`, event.id),
    kind: string(`${argument}.kind`, event.kind),
    created_time: nullableDatetime(`${argument}.createdTime`, event.createdTime),
    received_time: nullableDatetime(`${argument}.receivedTime`, event.receivedTime),
    data: data(`${argument}.data`, given, enclosing + 1, numbers),
  }
}

const wireChild = (argument: string, value: unknown, numbers: Numbers) => {
  const child = checkObject(argument, value)
  return {
    root_path: checkKeyOrEmpty(`${argument}.rootPath`, child.rootPath),
    finished: checkFlag(`${argument}.finished`, child.finished),
    outcome: nullableString(`${argument}.outcome`, child.outcome),
    result: data(`${argument}.result`, child.result, 3, numbers),
    submachine: checkFlag(`${argument}.submachine`, child.submachine),
    key: string(`${argument}.key`, child.key),
  }
}

/** An object with the same keys (`__proto__` included) and each value mapped. */
function mapMembers<T>(argument: string, value: unknown, map: (argument: string, value: unknown, key: string) => T) {
  const entries = Object.entries(checkPlain(argument, value))
  // Most executions have no children and no counters.
  if (entries.length === 0) return {} as Record<string, T>
  return Object.fromEntries(entries.map(([key, member]) => [key, map(`${argument}${bracketed(key)}`, member, key)]))
}

const name = 'execution'

/**
 * An execution as it is stored, but for the fields of other programs: `version` first, then the token of the commit,
 * `id` and the other scalars, then the rest, so that who needs only the version finds it in front. Each member of the
 * execution is read once.
 */
function wireExecution(execution: Execution, version: number, token: string, numbers: Numbers) {
  const { context } = execution
  if (numbers === 'exact') refuseRounded(name, execution, context)
  return {
    version,
    commit_token: token,
    id: checkKey(`${name}.id`, execution.id),
    definition_id: checkKey(`${name}.definitionId`, execution.definitionId),
    definition_fqn: nullableString(`${name}.definitionFqn`, execution.definitionFqn),
    root_path: checkKeyOrEmpty(`${name}.rootPath`, execution.rootPath),
    status: checkStatus(`${name}.status`, execution.status),
    outcome: nullableString(`${name}.outcome`, execution.outcome),
    error: nullableString(`${name}.error`, execution.error),
    active_path: nullableString(`${name}.activePath`, execution.activePath),
    processed_events: count(`${name}.processedEvents`, execution.processedEvents),
    priority: checkInteger(`${name}.priority`, execution.priority, 0, 4),
    parent_id: checkKeyOrNull(`${name}.parentId`, execution.parentId),
    child_id: checkKeyOrNull(`${name}.childId`, execution.childId),
    created_at: nullableTime(`${name}.createdAt`, execution.createdAt),
    updated_at: nullableTime(`${name}.updatedAt`, execution.updatedAt),
    finished_at: nullableTime(`${name}.finishedAt`, execution.finishedAt),
    expires_at: nullableTime(`${name}.expiresAt`, execution.expiresAt),
    history: data(`${name}.history`, execution.history, 1, numbers),
    context: data(`${name}.context`, context, 1, numbers),
    deferred: checkArray(`${name}.deferred`, execution.deferred).map((event, index) =>
      wireEvent(`${name}.deferred[${index}]`, event, 2, numbers),
    ),
    children: mapMembers(`${name}.children`, execution.children, (argument, child, key) => {
      checkKey(argument, key)
      return wireChild(argument, child, numbers)
    }),
    invoke_seq: mapMembers(`${name}.invokeSeq`, execution.invokeSeq, count),
  }
}

/**
 * The payload of an execution, and what it holds, for the columns beside it. Fields of other programs come last.
 *
 * @throws InvalidArgument, NotSerializable with the path
 */
export function encodeState(execution: Execution, version: number, token: string, numbers: Numbers) {
  const wire = wireExecution(execution, version, token, numbers)
  const unknown = unknownFieldsOf(execution, wire)
  return { wire, data: toJson(unknown === undefined ? wire : { ...wire, ...unknown }, name) }
}

/** The payload of an execution. @throws InvalidArgument, NotSerializable with the path */
export const encodeExecution = (
  execution: Execution,
  version: number,
  token: string,
  numbers: Numbers = 'exact',
): string => encodeState(execution, version, token, numbers).data

/** The stored text of an event. @throws InvalidArgument, NotSerializable with the path */
export const encodeEvent = (event: HarelEvent, argument = 'event', numbers: Numbers = 'exact'): string =>
  toJson(wireEvent(argument, event, 0, numbers), argument)

/**
 * The stored text of a spawn's context, a trace step or a definition. A context may be nested as deep as it may be in
 * the execution that will be made of it. @throws NotSerializable with the path
 */
export function encodeJson(value: unknown, name: string, numbers: Numbers = 'exact'): string {
  if (numbers === 'exact') refuseRounded(name, value)
  validateSerializable(value, name, { enclosing: 1, numbers })
  return toJson(value, name)
}
