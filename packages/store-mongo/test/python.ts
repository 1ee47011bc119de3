import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from 'mongodb'

const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, 'vectors', file), 'utf8'))

/** Stores the documents that Python harel has written, under this prefix. */
export async function restore(db: Db, name: 'scenario' | 'runner', prefix: string): Promise<void> {
  const collections: Record<string, { _id: string }[]> = read(`${name}.documents.json`)
  for (const [collection, documents] of Object.entries(collections)) {
    await db.collection<{ _id: string }>(collection.replace(/^harel_/, `${prefix}_`)).insertMany(documents)
  }
}

/** What Python reads from these documents. */
export function readByPython(name: 'scenario' | 'runner'): object {
  // What the program that wrote the documents noted down beside it.
  const { notes: _notes, definition_id: _definition, fired: _fired, ...stored } = read(`${name}.canonical.json`)
  return stored
}

/** The document of an execution as Python writes it. */
export function pythonDocument(id: string, version: number, fields: Record<string, unknown> = {}) {
  const payload = {
    ...{ id, definition_id: 'd', definition_fqn: null, root_path: '', status: 'RUNNING', outcome: null, error: null },
    ...{ active_path: null, history: {}, context: {}, processed_events: 0, version, priority: 0, parent_id: null },
    ...{ child_id: null, deferred: [], children: {}, invoke_seq: {}, created_at: null, updated_at: null },
    ...{ finished_at: null, expires_at: null },
  }
  const parts = { outbox: [], spawns: [], timers: {}, processed: [], trace: [] }
  return { _id: id, definition_id: 'd', version, data: JSON.stringify(payload), ...parts, ...fields }
}
