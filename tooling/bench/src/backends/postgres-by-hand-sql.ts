const PARAMETERS = `p_id text, p_expected int, p_definition text, p_status text, p_parent text, p_outcome text,
    p_active_path text, p_finished_at float8, p_data text`

const UPDATE = `UPDATE harel_executions SET data = p_data, version = version + 1, meta_version = version + 1,
      definition_id = p_definition, status = p_status, parent_id = p_parent, outcome = p_outcome,
      active_path = p_active_path, finished_at = p_finished_at
    WHERE id = p_id AND version = p_expected`

/** On the store's tables. Their trigger is left in peace, because `meta_version` is set. */
export const FUNCTIONS = `
CREATE FUNCTION by_hand_state(${PARAMETERS}) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  ${UPDATE};
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN 1;
END $$;

CREATE FUNCTION by_hand(${PARAMETERS}, p_processed text, p_event text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  number bigint;
BEGIN
  ${UPDATE};
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO harel_outbox (target_id, event) VALUES (p_id, p_event) RETURNING seq INTO number;
  INSERT INTO harel_processed_events (execution_id, event_id) VALUES (p_id, p_processed) ON CONFLICT DO NOTHING;
  RETURN number;
END $$;

CREATE FUNCTION by_hand_full(${PARAMETERS}, p_processed text, p_first text, p_second text, p_child text,
    p_root_path text, p_context text, p_step text, p_kept int, p_path text, p_fire_at float8, p_path_2 text,
    p_fire_at_2 float8)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  number bigint;
  place int;
BEGIN
  ${UPDATE};
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO harel_outbox (target_id, event) VALUES (p_id, p_first) RETURNING seq INTO number;
  INSERT INTO harel_outbox (target_id, event) VALUES (p_id, p_second);
  INSERT INTO harel_processed_events (execution_id, event_id) VALUES (p_id, p_processed) ON CONFLICT DO NOTHING;
  INSERT INTO harel_spawns (parent_id, child_id, root_path, context) VALUES (p_id, p_child, p_root_path, p_context);
  INSERT INTO harel_timers (execution_id, path, fire_at)
    VALUES (p_id, p_path, p_fire_at), (p_id, p_path_2, p_fire_at_2)
    ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at;
  SELECT COALESCE(max(idx), -1) + 1 INTO place FROM harel_trace WHERE execution_id = p_id;
  INSERT INTO harel_trace (execution_id, idx, entry) VALUES (p_id, place, p_step);
  DELETE FROM harel_trace WHERE execution_id = p_id AND idx <= place - p_kept;
  RETURN number;
END $$;

CREATE FUNCTION by_hand_all(p_ids text[], p_expected int[], p_definitions text[], p_statuses text[], p_parents text[],
    p_outcomes text[], p_active_paths text[], p_finished_at float8[], p_data text[], p_processed text[],
    p_events text[])
RETURNS bigint[] LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  applied text[];
  numbers bigint[];
BEGIN
  PERFORM 1 FROM harel_executions WHERE id = ANY (p_ids) ORDER BY id FOR NO KEY UPDATE;
  WITH updated AS (
    UPDATE harel_executions x SET data = c.data, version = x.version + 1, meta_version = x.version + 1,
        definition_id = c.definition_id, status = c.status, parent_id = c.parent_id, outcome = c.outcome,
        active_path = c.active_path, finished_at = c.finished_at
      FROM unnest(p_ids, p_expected, p_definitions, p_statuses, p_parents, p_outcomes, p_active_paths, p_finished_at,
        p_data) c(id, expected, definition_id, status, parent_id, outcome, active_path, finished_at, data)
      WHERE x.id = c.id AND x.version = c.expected RETURNING x.id
  ) SELECT array_agg(id) INTO applied FROM updated;
  WITH added AS (
    INSERT INTO harel_outbox (target_id, event)
      SELECT id, event FROM unnest(p_ids, p_events) WITH ORDINALITY u(id, event, place)
      WHERE id = ANY (applied) ORDER BY place RETURNING seq
  ) SELECT array_agg(seq ORDER BY seq) INTO numbers FROM added;
  INSERT INTO harel_processed_events (execution_id, event_id)
    SELECT id, event FROM unnest(p_ids, p_processed) u(id, event) WHERE id = ANY (applied) ON CONFLICT DO NOTHING;
  RETURN numbers;
END $$`

const call = (name: string, parameters: number): string =>
  `${name}(${Array.from({ length: parameters }, (_, index) => `$${index + 1}`).join(', ')})`

export const STATE = `SELECT ${call('by_hand_state', 9)}`
export const ONE = `SELECT ${call('by_hand', 11)}`
export const FULL = `SELECT ${call('by_hand_full', 21)}`
export const ALL = `SELECT unnest(${call('by_hand_all', 11)})`
