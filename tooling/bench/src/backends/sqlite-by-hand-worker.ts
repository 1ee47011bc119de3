import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { type Row, writerByHand } from './sqlite-by-hand.ts'

const db = new Database(workerData as string)
db.pragma('synchronous = FULL')
const write = writerByHand(db)
parentPort?.on('message', (rows: Row[]) => parentPort?.postMessage(write(rows)))
