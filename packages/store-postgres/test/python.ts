import type { Sql } from 'postgres'

/** The tables as Python harel 0.9.0 makes them, in the first schema of the search path. */
export async function pythonDatabase(sql: Sql, prefix = 'harel'): Promise<void> {
  await sql.unsafe(`
    CREATE TABLE ${prefix}_executions (
      id TEXT PRIMARY KEY, definition_id TEXT NOT NULL, data TEXT NOT NULL, version INT NOT NULL);
    CREATE TABLE ${prefix}_outbox (seq BIGSERIAL PRIMARY KEY, target_id TEXT, event TEXT NOT NULL);
    CREATE TABLE ${prefix}_processed_events (
      execution_id TEXT NOT NULL, event_id TEXT NOT NULL, PRIMARY KEY (execution_id, event_id));
    CREATE TABLE ${prefix}_timers (
      execution_id TEXT NOT NULL, path TEXT NOT NULL, fire_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (execution_id, path));
    CREATE TABLE ${prefix}_spawns (
      seq BIGSERIAL PRIMARY KEY, parent_id TEXT NOT NULL, child_id TEXT NOT NULL, root_path TEXT NOT NULL,
      context TEXT NOT NULL);
    CREATE TABLE ${prefix}_trace (
      execution_id TEXT NOT NULL, idx INT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (execution_id, idx))`)
}

/** Executions as Python stores them, `count` of them, half of them done. */
export async function pythonExecutions(sql: Sql, count: number, prefix = 'harel'): Promise<void> {
  await sql.unsafe(`INSERT INTO ${prefix}_executions (id, definition_id, data, version)
    SELECT 'p' || lpad(n::text, 5, '0'), 'd', json_build_object('id', 'p' || lpad(n::text, 5, '0'), 'definition_id', 'd',
      'status', CASE WHEN n % 2 = 0 THEN 'DONE' ELSE 'RUNNING' END, 'version', 1)::text, 1
      FROM generate_series(1, ${count}) n`)
}
