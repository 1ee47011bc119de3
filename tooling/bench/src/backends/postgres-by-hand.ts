/** The writes of a commit with postgres.js alone: functions that do no more, and their prepared calls. */
import type { Sql } from 'postgres'
import { nextEventId, type Subject, wireEvent } from '../workload.ts'

/** On the store's tables. Their trigger is left in peace, because `meta_version` is set. */
export const FUNCTIONS = `
CREATE FUNCTION by_hand(p_id text, p_expected int, p_definition text, p_status text, p_parent text, p_outcome text,
    p_active_path text, p_finished_at float8, p_processed text, p_data text, p_target text, p_event text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  number bigint;
BEGIN
  UPDATE harel_executions SET data = p_data, version = version + 1, meta_version = version + 1,
      definition_id = p_definition, status = p_status, parent_id = p_parent, outcome = p_outcome,
      active_path = p_active_path, finished_at = p_finished_at
    WHERE id = p_id AND version = p_expected;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO harel_outbox (target_id, event) VALUES (p_target, p_event) RETURNING seq INTO number;
  INSERT INTO harel_processed_events (execution_id, event_id) VALUES (p_id, p_processed) ON CONFLICT DO NOTHING;
  RETURN number;
END $$;

CREATE FUNCTION by_hand_all(p_ids text[], p_expected int[], p_definitions text[], p_statuses text[], p_parents text[],
    p_outcomes text[], p_active_paths text[], p_finished_at float8[], p_processed text[], p_data text[],
    p_targets text[], p_events text[])
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
      SELECT target, event FROM unnest(p_ids, p_targets, p_events) WITH ORDINALITY u(id, target, event, place)
      WHERE id = ANY (applied) ORDER BY place RETURNING seq
  ) SELECT array_agg(seq ORDER BY seq) INTO numbers FROM added;
  INSERT INTO harel_processed_events (execution_id, event_id)
    SELECT id, event FROM unnest(p_ids, p_processed) u(id, event) WHERE id = ANY (applied) ON CONFLICT DO NOTHING;
  RETURN numbers;
END $$`

type Row = readonly (string | number | null)[]

/** Serialises one commit: the parameters of `by_hand`. */
function rowOf({ execution, wire }: Subject): Row {
  const eventId = nextEventId()
  wire.version = execution.version + 1
  return [
    wire.id,
    execution.version,
    wire.definition_id,
    wire.status,
    wire.parent_id,
    wire.outcome,
    wire.active_path,
    wire.finished_at,
    eventId,
    JSON.stringify(wire),
    wire.id,
    JSON.stringify(wireEvent(eventId)),
  ]
}

const ONE = 'SELECT by_hand($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)'
const ALL = 'SELECT unnest(by_hand_all($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12))'

/** One call for one commit. */
export const singleCalls = (sql: Sql) => async (subject: Subject) => {
  const [row] = await sql.unsafe(ONE, [...rowOf(subject)], { prepare: true }).values()
  if (row?.[0] == null) throw new Error(`version ${subject.execution.version} of ${subject.wire.id} is not stored`)
  subject.execution.version += 1
  return [Number(row[0])]
}

/** One call for all commits that wait, with another one under way. */
export function batchedCalls(sql: Sql) {
  let waiting: { row: Row; resolve: (seq: number) => void; reject: (error: unknown) => void }[] = []
  let underWay = 0
  const send = async () => {
    if (underWay === 2 || waiting.length === 0) return
    const sent = waiting
    waiting = []
    underWay++
    try {
      const columns = sent[0]?.row.map((_, column) => sent.map(({ row }) => row[column] ?? null)) ?? []
      const rows = await sql.unsafe(ALL, columns, { prepare: true }).values()
      if (rows.length !== sent.length) throw new Error('a version is not stored')
      for (const [index, { resolve }] of sent.entries()) resolve(Number(rows[index]?.[0]))
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
    underWay--
    setImmediate(send)
  }
  return async (subject: Subject) => {
    const row = rowOf(subject)
    const seq = await new Promise<number>((resolve, reject) => {
      waiting.push({ row, resolve, reject })
      if (waiting.length === 1) queueMicrotask(send)
    })
    subject.execution.version += 1
    return [seq]
  }
}
