import { quoteBody } from './quoting.js'

/** The tables of a store, as they stand in statements. */
export interface Tables {
  readonly executions: string
  readonly outbox: string
  readonly processed: string
  readonly spawns: string
  readonly timers: string
  readonly trace: string
  readonly definitions: string
}

/** The functions of a store, as they stand in statements. */
export interface Functions {
  readonly commit: string
  readonly commitAll: string
  readonly appendTrace: string
}

/**
 * Between texts that are sent as one: no JSON text has a control character in it, and taking them apart costs less than
 * reading an array.
 */
export const SEPARATOR = '\u001f'

const split = (texts: string): string => `string_to_array(${texts}, E'\\x1f', '')`

/** How long to wait for what cannot be passed over: a first insert waits for another one of the same id. */
const SHORT_WAIT = '20ms'

/**
 * One commit. The compare-and-set comes before every other write, so that a refused commit writes nothing and takes no
 * sequence number. What most commits lack comes last and may be left out: each argument that is sent takes time.
 *
 * Fails with 55P03 (lock_not_available) when somebody else holds the execution for longer than a moment, or than
 * `p_lock_timeout`.
 *
 * Answers `version;seqs`: the version found, 0 when there is none, and the seqs of the emits. The commit was applied if
 * the version is `p_expected`; a row that others stored at version 0 is taken by a first commit. -1: busy, somebody else
 * changes the row just now.
 *
 * The planner setting keeps a plan that was made when the tables were empty from scanning them when they are full.
 */
export const commitFunction = (
  functions: Functions,
  tables: Tables,
): string => `CREATE OR REPLACE FUNCTION ${functions.commit}(
  p_id text, p_expected bigint, p_definition text, p_status text, p_parent text, p_outcome text, p_active_path text,
  p_finished_at float8, p_processed text, p_data text, p_emit_targets text[], p_emit_events text,
  p_trace text DEFAULT NULL, p_trace_max int DEFAULT 0,
  p_timer_paths text[] DEFAULT '{}', p_timer_times float8[] DEFAULT '{}',
  p_spawn_children text[] DEFAULT '{}', p_spawn_paths text[] DEFAULT '{}', p_spawn_contexts text DEFAULT '',
  p_lock_timeout text DEFAULT NULL
) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '${SHORT_WAIT}' AS ${quoteBody(`
DECLARE
  events text[] := ${split('p_emit_events')};
  found_version int;
  number bigint;
  seqs text;
BEGIN
  IF p_lock_timeout IS NOT NULL THEN PERFORM set_config('lock_timeout', p_lock_timeout, true); END IF;
  UPDATE ${tables.executions} SET data = p_data, version = version + 1, meta_version = version + 1,
      definition_id = p_definition, status = p_status, parent_id = p_parent, outcome = p_outcome,
      active_path = p_active_path, finished_at = p_finished_at
    WHERE id = p_id AND version = p_expected;
  IF NOT FOUND AND p_expected = 0 THEN
    INSERT INTO ${tables.executions} (id, definition_id, version, meta_version, status, parent_id, outcome, active_path,
        finished_at, data)
      VALUES (p_id, p_definition, 1, 1, p_status, p_parent, p_outcome, p_active_path, p_finished_at, p_data)
      ON CONFLICT DO NOTHING;
  END IF;
  IF NOT FOUND THEN
    found_version := COALESCE((SELECT version FROM ${tables.executions} WHERE id = p_id), 0);
    RETURN CASE WHEN found_version = p_expected THEN -1 ELSE found_version END || ';';
  END IF;

  FOR i IN 1 .. COALESCE(cardinality(events), 0) LOOP
    INSERT INTO ${tables.outbox} (target_id, event) VALUES (p_emit_targets[i], events[i]) RETURNING seq INTO number;
    seqs := concat_ws(',', seqs, number);
  END LOOP;
  IF p_processed IS NOT NULL THEN
    INSERT INTO ${tables.processed} (execution_id, event_id) VALUES (p_id, p_processed) ON CONFLICT DO NOTHING;
  END IF;
  IF p_spawn_contexts <> '' THEN
    INSERT INTO ${tables.spawns} (parent_id, child_id, root_path, context)
      SELECT p_id, child, path, context
      FROM unnest(p_spawn_children, p_spawn_paths, ${split('p_spawn_contexts')})
        WITH ORDINALITY u(child, path, context, place) ORDER BY place;
  END IF;
  IF p_timer_paths <> '{}' THEN
    DELETE FROM ${tables.timers} t USING unnest(p_timer_paths, p_timer_times) u(path, fire_at)
      WHERE u.fire_at IS NULL AND t.execution_id = p_id AND t.path = u.path;
    INSERT INTO ${tables.timers} (execution_id, path, fire_at)
      SELECT p_id, path, fire_at FROM unnest(p_timer_paths, p_timer_times) u(path, fire_at) WHERE fire_at IS NOT NULL
      ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = EXCLUDED.fire_at;
  END IF;
  IF p_trace IS NOT NULL THEN PERFORM ${functions.appendTrace}(p_id, p_trace, p_trace_max); END IF;
  RETURN concat(p_expected, ';', seqs);
END`)}`

/**
 * Commits of distinct executions, in one transaction: arrays with one element per commit, and for emits, timers and
 * spawns one element each, with the place (from 1) of its commit in \`…_of\`. Statements are of sets, not in a loop.
 *
 * A row that somebody else holds is passed over, and its commit reported as busy: no commit waits for another one's row,
 * and batches of several processes do not deadlock.
 *
 * Answers `versions;seqs`: of each commit the version found, 0 when there is none; it was applied if it is the one
 * expected. -1: busy. And the seqs of the emits of the applied commits, in their order.
 */
export const commitAllFunction = (
  functions: Functions,
  tables: Tables,
): string => `CREATE OR REPLACE FUNCTION ${functions.commitAll}(
  p_ids text[], p_expected bigint[], p_definitions text[], p_statuses text[], p_parents text[], p_outcomes text[],
  p_active_paths text[], p_finished_at float8[], p_processed text[], p_data text, p_traces text,
  p_emit_of int[], p_emit_targets text[], p_emit_events text,
  p_timer_of int[], p_timer_paths text[], p_timer_times float8[],
  p_spawn_of int[], p_spawn_children text[], p_spawn_paths text[], p_spawn_contexts text,
  p_trace_max int
) RETURNS text LANGUAGE plpgsql SET lock_timeout = '${SHORT_WAIT}'
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS ${quoteBody(`
DECLARE
  payloads text[] := ${split('p_data')};
  seen_versions int[];
  applied boolean[];
  made int;
  seqs text;
BEGIN
  seen_versions := ARRAY(
    SELECT CASE WHEN held.version IS NOT NULL THEN held.version
        WHEN EXISTS (SELECT 1 FROM ${tables.executions} x WHERE x.id = u.id) THEN -1 ELSE 0 END
      FROM unnest(p_ids) WITH ORDINALITY u(id, place) LEFT JOIN LATERAL (
        SELECT x.version FROM ${tables.executions} x WHERE x.id = u.id FOR NO KEY UPDATE SKIP LOCKED
      ) held ON true ORDER BY place);

  UPDATE ${tables.executions} x SET data = c.data, version = x.version + 1, meta_version = x.version + 1,
      definition_id = c.definition_id, status = c.status, parent_id = c.parent_id, outcome = c.outcome,
      active_path = c.active_path, finished_at = c.finished_at
    FROM unnest(p_ids, p_expected, seen_versions, payloads, p_definitions, p_statuses, p_parents, p_outcomes,
        p_active_paths, p_finished_at)
      c(id, expected, seen, data, definition_id, status, parent_id, outcome, active_path, finished_at)
    WHERE x.id = c.id AND x.version = c.seen AND c.seen = c.expected;

  IF 0 = ANY (p_expected) THEN
    INSERT INTO ${tables.executions} (id, definition_id, version, meta_version, status, parent_id, outcome, active_path,
        finished_at, data)
      SELECT id, definition_id, 1, 1, status, parent_id, outcome, active_path, finished_at, data
      FROM unnest(p_ids, p_expected, seen_versions, payloads, p_definitions, p_statuses, p_parents, p_outcomes,
          p_active_paths, p_finished_at)
        c(id, expected, seen, data, definition_id, status, parent_id, outcome, active_path, finished_at)
      WHERE expected = 0 AND seen = 0 ORDER BY id ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made < (SELECT count(*) FROM unnest(p_expected, seen_versions) u(expected, seen)
        WHERE expected = 0 AND seen = 0) THEN
      -- Those that were stored at version 0 are written already, and of others somebody else was faster. What is ours can
      -- be told by its payload, which has the random token of the commit.
      seen_versions := ARRAY(
        SELECT CASE WHEN expected <> 0 OR seen <> 0 OR x.data = u.data THEN seen ELSE COALESCE(NULLIF(x.version, 0), -1) END
          FROM unnest(p_ids, p_expected, seen_versions, payloads) WITH ORDINALITY u(id, expected, seen, data, place)
          LEFT JOIN ${tables.executions} x ON x.id = u.id ORDER BY place);
    END IF;
  END IF;
  applied := ARRAY(SELECT seen = expected
    FROM unnest(seen_versions, p_expected) WITH ORDINALITY u(seen, expected, place) ORDER BY place);

  IF p_emit_events <> '' THEN
    WITH added AS (
      INSERT INTO ${tables.outbox} (target_id, event)
        SELECT target, event FROM unnest(p_emit_of, p_emit_targets, ${split('p_emit_events')})
          WITH ORDINALITY u(o, target, event, place) WHERE applied[o] ORDER BY place
      RETURNING seq
    ) SELECT string_agg(seq::text, ',' ORDER BY seq) INTO seqs FROM added;
  END IF;
  IF array_remove(p_processed, NULL) <> '{}' THEN
    INSERT INTO ${tables.processed} (execution_id, event_id)
      SELECT id, event FROM unnest(p_ids, p_processed, applied) u(id, event, applied)
      WHERE u.applied AND event IS NOT NULL
      ON CONFLICT DO NOTHING;
  END IF;
  IF p_spawn_contexts <> '' THEN
    INSERT INTO ${tables.spawns} (parent_id, child_id, root_path, context)
      SELECT p_ids[o], child, path, context
      FROM unnest(p_spawn_of, p_spawn_children, p_spawn_paths, ${split('p_spawn_contexts')})
        WITH ORDINALITY u(o, child, path, context, place) WHERE applied[o] ORDER BY place;
  END IF;
  IF p_timer_of <> '{}' THEN
    DELETE FROM ${tables.timers} t USING unnest(p_timer_of, p_timer_paths, p_timer_times) u(o, path, fire_at)
      WHERE applied[o] AND u.fire_at IS NULL AND t.execution_id = p_ids[o] AND t.path = u.path;
    INSERT INTO ${tables.timers} (execution_id, path, fire_at)
      SELECT p_ids[o], path, fire_at FROM unnest(p_timer_of, p_timer_paths, p_timer_times) u(o, path, fire_at)
      WHERE applied[o] AND fire_at IS NOT NULL
      ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = EXCLUDED.fire_at;
  END IF;
  PERFORM ${functions.appendTrace}(id, step, p_trace_max)
    FROM unnest(p_ids, ${split('p_traces')}, applied) u(id, step, applied) WHERE u.applied AND step IS NOT NULL;
  RETURN concat(array_to_string(seen_versions, ','), ';', seqs);
END`)}`

/** Adds a step to a trace. Whoever is given a number that somebody else has taken meanwhile tries the next one. */
export const appendTraceFunction = (
  functions: Functions,
  tables: Tables,
): string => `CREATE OR REPLACE FUNCTION ${functions.appendTrace}(
  p_id text, p_entry text, p_max int
) RETURNS void LANGUAGE plpgsql AS ${quoteBody(`
DECLARE
  number int;
BEGIN
  LOOP
    INSERT INTO ${tables.trace} (execution_id, idx, entry)
      SELECT p_id, COALESCE(MAX(idx), -1) + 1, p_entry FROM ${tables.trace} WHERE execution_id = p_id
      ON CONFLICT DO NOTHING RETURNING idx INTO number;
    EXIT WHEN FOUND;
  END LOOP;
  IF p_max > 0 THEN
    DELETE FROM ${tables.trace} WHERE execution_id = p_id AND idx <= number - p_max;
  END IF;
END`)}`
