import { Names, STATUSES } from '@harel/store-base'
import type { SchemaObject } from '@harel/store-base/sql'
import {
  appendTraceFunction,
  commitAllFunction,
  commitFunction,
  type Functions,
  type Tables,
} from './commit-functions.js'
import { NO_STATUS } from './listing.js'
import { quote, quoteBody } from './quoting.js'

/** The tables of a prefix (in lower case) as they stand in statements. */
export function tablesOf(prefix: string, schema: string): Tables {
  const names = Names(prefix)
  const qualified = (name: string) => `${quote(schema)}.${quote(name)}`
  return {
    executions: qualified(names.executions),
    outbox: qualified(names.outbox),
    processed: qualified(names.processedEvents),
    spawns: qualified(names.spawns),
    timers: qualified(names.timers),
    trace: qualified(names.trace),
    definitions: qualified(names.definitions),
  }
}

/** What this package adds, behind the prefix. Numbers change with meanings: two releases can share a database. */
const NAMES = {
  commit: 'commit_v2',
  commitAll: 'commit_all_v3',
  appendTrace: 'append_trace_v1',
  summary: 'summary_v1',
  fill: 'fill_summary_v1',
  trigger: 'executions_summary',
} as const

/** The functions of a prefix as they stand in statements. */
export function functionsOf(prefix: string, schema: string): Functions & { summary: string; fill: string } {
  const qualified = (name: string) => `${quote(schema)}.${quote(`${prefix}_${name}`)}`
  return {
    commit: qualified(NAMES.commit),
    commitAll: qualified(NAMES.commitAll),
    appendTrace: qualified(NAMES.appendTrace),
    summary: qualified(NAMES.summary),
    fill: qualified(NAMES.fill),
  }
}

/** The functions of a store, and the trigger that fills the summaries of other writers' rows. */
export function storeFunctions(prefix: string, schema: string): SchemaObject[] {
  const functions = functionsOf(prefix, schema)
  const { summary, fill } = functions
  const tables = tablesOf(prefix, schema)
  const object = (kind: 'function' | 'trigger', name: string, sql: string): SchemaObject => ({
    kind,
    name: `${prefix}_${name}`,
    table: Names(prefix).executions,
    shared: false,
    sql,
  })
  return [
    object('function', NAMES.summary, summaryFunction(summary)),
    object('function', NAMES.fill, fillFunction(fill, summary)),
    object(
      'trigger',
      NAMES.trigger,
      `CREATE OR REPLACE TRIGGER ${quote(`${prefix}_${NAMES.trigger}`)}
  BEFORE INSERT OR UPDATE OF data ON ${tables.executions}
  FOR EACH ROW WHEN (NEW.meta_version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION ${fill}()`,
    ),
    object('function', NAMES.appendTrace, appendTraceFunction(functions, tables)),
    object('function', NAMES.commit, commitFunction(functions, tables)),
    object('function', NAMES.commitAll, commitAllFunction(functions, tables)),
  ]
}

const summaryText = (field: string): string =>
  `CASE WHEN left(payload->>'${field}', 1) = chr(1) THEN chr(1) || (payload->'${field}')::text ELSE payload->>'${field}' END`

/**
 * The listed fields of a payload. A status that there is not, also that of a payload which is not JSON, is an empty
 * text, so that an index leads to it. Escapes that jsonb refuses (U+0000 and halves of surrogate pairs) are read as
 * blanks. A text with the mark of `toSummaryColumn` in front is written as that does.
 */
const summaryFunction = (name: string): string => `CREATE OR REPLACE FUNCTION ${name}(
  data text, OUT status text, OUT parent_id text, OUT outcome text, OUT active_path text, OUT finished_at float8
) LANGUAGE plpgsql IMMUTABLE AS ${quoteBody(`
DECLARE
  payload jsonb;
BEGIN
  status := '${NO_STATUS}';
  payload := regexp_replace(data, '\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\\\u0020', 'g')::jsonb;
  IF payload->>'status' IN (${STATUSES.map((status) => `'${status}'`).join(', ')}) THEN
    status := payload->>'status';
  END IF;
  parent_id := payload->>'parent_id';
  outcome := ${summaryText('outcome')};
  active_path := ${summaryText('active_path')};
  finished_at := (payload->>'finished_at')::float8;
EXCEPTION WHEN OTHERS THEN
  -- What was read until then is what there is.
END`)}`

/** Fills the summary of a row that another writer has written. */
const fillFunction = (name: string, summary: string): string => `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger
LANGUAGE plpgsql AS ${quoteBody(`
BEGIN
  SELECT s.status, s.parent_id, s.outcome, s.active_path, s.finished_at
    INTO NEW.status, NEW.parent_id, NEW.outcome, NEW.active_path, NEW.finished_at FROM ${summary}(NEW.data) s;
  NEW.meta_version := NEW.version;
  RETURN NEW;
END`)}`
