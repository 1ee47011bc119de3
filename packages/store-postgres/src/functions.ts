import { Names } from '@harel/store-base'
import type { SchemaObject } from '@harel/store-base/sql'

/** A name as it stands in statements. */
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** The names of what this package adds. Their number changes with their meaning: two releases can share a database. */
export function functionNames(prefix: string) {
  const lower = prefix.toLowerCase()
  return { commit: `${lower}_commit_v1`, summary: `${lower}_summary_v1`, fill: `${lower}_fill_summary_v1` }
}

/**
 * The functions and triggers of a store.
 *
 * @param qualified a table's or function's name to its name with the schema
 */
export function storeFunctions(prefix: string, qualified: (name: string) => string): SchemaObject[] {
  const names = functionNames(prefix)
  const { executions } = Names(prefix.toLowerCase())
  const object = (kind: 'function' | 'trigger', name: string, sql: string): SchemaObject => ({
    kind,
    name,
    table: executions,
    shared: false,
    sql,
  })
  return [
    object('function', names.summary, summaryFunction(qualified(names.summary))),
    object('function', names.fill, fillFunction(qualified(names.fill), qualified(names.summary))),
    object(
      'trigger',
      `${executions}_summary`,
      `CREATE OR REPLACE TRIGGER ${quote(`${executions}_summary`)} BEFORE INSERT OR UPDATE OF data ON ${qualified(executions)}
FOR EACH ROW WHEN (NEW.meta_version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION ${qualified(names.fill)}()`,
    ),
    object('function', names.commit, commitFunction(prefix, qualified)),
  ]
}

/**
 * The listed fields of a payload; all null when it is not JSON. Escapes that jsonb refuses (U+0000 and halves of
 * surrogate pairs) are read as blanks.
 */
const summaryFunction = (name: string): string => `
CREATE OR REPLACE FUNCTION ${name}(data text, OUT status text, OUT parent_id text, OUT outcome text, OUT active_path text,
  OUT finished_at float8) LANGUAGE plpgsql IMMUTABLE AS $function$
DECLARE payload jsonb;
BEGIN
  payload := regexp_replace(data, '\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\\\u0020', 'g')::jsonb;
  status := payload->>'status';
  parent_id := payload->>'parent_id';
  outcome := payload->>'outcome';
  active_path := payload->>'active_path';
  finished_at := (payload->>'finished_at')::float8;
EXCEPTION WHEN OTHERS THEN NULL;
END $function$`

/** Fills the summary of a row that another writer has written. */
const fillFunction = (name: string, summary: string): string => `
CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
  SELECT s.status, s.parent_id, s.outcome, s.active_path, s.finished_at
    INTO NEW.status, NEW.parent_id, NEW.outcome, NEW.active_path, NEW.finished_at FROM ${summary}(NEW.data) s;
  NEW.meta_version := NEW.version;
  RETURN NEW;
END $function$`

/**
 * Commits of distinct executions, in one statement: parallel arrays with one element per commit, and for emits, timers
 * and spawns one element each, with the place (from 1) of its commit in `…_of`.
 *
 * Rows are locked in the order of their ids, so that batches of several processes do not deadlock. `lock_wait`: how
 * long to wait for them, in milliseconds; at 0, a row that somebody else holds is passed over and its commit reported as
 * busy; at -1 the settings of the transaction are left alone. The compare-and-set comes before every other write, so
 * that a refused commit writes nothing and takes no sequence number.
 *
 * `verdicts`: per commit `a` (applied), `b` (busy), `c` and the stored version (conflict; `c` alone: none).
 * `seqs`: of the emits of the applied commits, in their order.
 *
 * The planner settings keep a plan that was made when the tables were empty from scanning them when they are full.
 */
function commitFunction(prefix: string, qualified: (name: string) => string): string {
  const names = Names(prefix.toLowerCase())
  const executions = qualified(names.executions)
  const outboxSeq = `${qualified(`${names.outbox}_seq_seq`)}`
  return `
CREATE OR REPLACE FUNCTION ${qualified(functionNames(prefix).commit)}(
  ids text[], expected int[], payloads text[], definitions text[], statuses text[], parents text[], outcomes text[],
  active_paths text[], finished float8[], processed text[], traces text[],
  emit_of int[], emit_targets text[], emit_events text[],
  timer_of int[], timer_paths text[], timer_times float8[],
  spawn_of int[], spawn_children text[], spawn_paths text[], spawn_contexts text[],
  trace_max int, lock_wait int, OUT verdicts text, OUT seqs text
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $function$
DECLARE
  free boolean[];
  good boolean[];
  taken bigint[];
BEGIN
  IF lock_wait = 0 THEN
    -- For what cannot be passed over: a first insert waits for another one of the same id.
    PERFORM set_config('lock_timeout', '20ms', true);
    WITH held AS (SELECT x.id FROM ${executions} x WHERE x.id = ANY(ids) ORDER BY x.id FOR UPDATE SKIP LOCKED)
    SELECT array_agg(h.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM ${executions} x WHERE x.id = u.id) ORDER BY u.place)
      INTO free FROM unnest(ids) WITH ORDINALITY u(id, place) LEFT JOIN held h ON h.id = u.id;
  ELSE
    IF lock_wait > 0 THEN PERFORM set_config('lock_timeout', lock_wait || 'ms', true); END IF;
    PERFORM 1 FROM ${executions} x WHERE x.id = ANY(ids) ORDER BY x.id FOR UPDATE;
    free := array_fill(true, ARRAY[cardinality(ids)]);
  END IF;

  WITH commits AS (
    SELECT * FROM unnest(ids, expected, payloads, definitions, statuses, parents, outcomes, active_paths, finished, free)
      WITH ORDINALITY u(id, expected, data, definition_id, status, parent_id, outcome, active_path, finished_at, free, place)
  ), updated AS (
    UPDATE ${executions} x SET data = c.data, version = c.expected + 1, meta_version = c.expected + 1,
        definition_id = c.definition_id, status = c.status, parent_id = c.parent_id, outcome = c.outcome,
        active_path = c.active_path, finished_at = c.finished_at
      FROM commits c WHERE x.id = c.id AND x.version = c.expected AND c.free RETURNING c.place
  ), inserted AS (
    INSERT INTO ${executions} (id, definition_id, version, meta_version, status, parent_id, outcome, active_path,
        finished_at, data)
      SELECT id, definition_id, 1, 1, status, parent_id, outcome, active_path, finished_at, data
      FROM commits WHERE commits.expected = 0 AND commits.free ORDER BY id ON CONFLICT DO NOTHING RETURNING id
  )
  SELECT array_agg(u.place IS NOT NULL OR i.id IS NOT NULL ORDER BY c.place) INTO good
    FROM commits c LEFT JOIN updated u ON u.place = c.place LEFT JOIN inserted i ON i.id = c.id;

  IF cardinality(emit_of) > 0 THEN
    -- The numbers first and then their places: rows may be made in any order.
    taken := ARRAY(SELECT n FROM (
      SELECT nextval('${outboxSeq.replaceAll("'", "''")}') n
        FROM generate_series(1, (SELECT count(*) FROM unnest(emit_of) o WHERE good[o]))
    ) numbers ORDER BY n);
    INSERT INTO ${qualified(names.outbox)} (seq, target_id, event)
      SELECT taken[(row_number() OVER (ORDER BY place))::int], target, event
      FROM unnest(emit_of, emit_targets, emit_events) WITH ORDINALITY u(o, target, event, place) WHERE good[o];
    seqs := array_to_string(taken, ',');
  END IF;
  IF array_remove(processed, NULL) <> '{}' THEN
    INSERT INTO ${qualified(names.processedEvents)} (execution_id, event_id)
      SELECT id, event FROM unnest(ids, processed, good) u(id, event, good) WHERE u.good AND event IS NOT NULL
      ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(spawn_of) > 0 THEN
    INSERT INTO ${qualified(names.spawns)} (parent_id, child_id, root_path, context)
      SELECT ids[o], child, path, context
      FROM unnest(spawn_of, spawn_children, spawn_paths, spawn_contexts) WITH ORDINALITY u(o, child, path, context, place)
      WHERE good[o] ORDER BY place;
  END IF;
  IF cardinality(timer_of) > 0 THEN
    DELETE FROM ${qualified(names.timers)} t USING unnest(timer_of, timer_paths, timer_times) u(o, path, fire_at)
      WHERE good[o] AND u.fire_at IS NULL AND t.execution_id = ids[o] AND t.path = u.path;
    INSERT INTO ${qualified(names.timers)} (execution_id, path, fire_at)
      SELECT ids[o], path, fire_at FROM unnest(timer_of, timer_paths, timer_times) u(o, path, fire_at)
      WHERE good[o] AND fire_at IS NOT NULL
      ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = EXCLUDED.fire_at;
  END IF;
  IF array_remove(traces, NULL) <> '{}' THEN
    WITH added AS (
      INSERT INTO ${qualified(names.trace)} (execution_id, idx, entry)
        SELECT id, COALESCE((SELECT MAX(idx) FROM ${qualified(names.trace)} t WHERE t.execution_id = id), -1) + 1, step
        FROM unnest(ids, traces, good) u(id, step, good) WHERE u.good AND step IS NOT NULL
      RETURNING execution_id, idx
    )
    DELETE FROM ${qualified(names.trace)} t USING added
      WHERE trace_max > 0 AND t.execution_id = added.execution_id AND t.idx <= added.idx - trace_max;
  END IF;

  IF false = ANY (good) THEN
    SELECT string_agg(
        CASE WHEN good[place] THEN 'a' WHEN free[place] THEN 'c' || COALESCE(x.version::text, '') ELSE 'b' END,
        ',' ORDER BY place)
      INTO verdicts FROM unnest(ids) WITH ORDINALITY u(id, place) LEFT JOIN ${executions} x ON x.id = u.id;
  ELSE
    verdicts := 'a';
  END IF;
END $function$`
}
