// Holds the write lock for a while: hold-lock.ts FILE MILLISECONDS
import { setTimeout as sleep } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'

const [file = '', milliseconds = ''] = process.argv.slice(2)
const db = new BetterSqlite3(file)
db.exec('BEGIN IMMEDIATE')
console.log('locked')
await sleep(Number(milliseconds))
db.exec('COMMIT')
console.log('released')
