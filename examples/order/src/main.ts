/**
 * The quick start: places orders, lets another process work on them, kills that process again and again, and looks at
 * the end whether anything was lost or done twice.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { check, readHistories } from './check.ts'
import { Progress, printFindings, printRate, printStates, printTimeline } from './report.ts'
import { supervise } from './supervisor.ts'
import { expectedCommits, orderInputs } from './workload.ts'

const USAGE = `usage: npm start -- [option]...

  --orders N  how many orders there are, 1 to 99999 (200)
  --kills N   how often the process that works on them is killed, 0 to 99999 (3)
  --keep      leave the database where it is
  --help      say this`

function readOptions() {
  try {
    return parseArgs({
      options: {
        orders: { type: 'string', default: '200' },
        kills: { type: 'string', default: '3' },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exit(2)
  }
}

const options = readOptions()
if (options.help) {
  console.log(USAGE)
  process.exit(0)
}

function numberOf(name: 'orders' | 'kills', least: number): number {
  const value = Number(options[name])
  if (Number.isInteger(value) && value >= least && value <= 99_999) return value
  console.error(`--${name} must be an integer from ${least} to 99999; got ${options[name]}`)
  process.exit(2)
}

const kills = numberOf('kills', 0)
const orders = orderInputs(numberOf('orders', 1))
const folder = mkdtempSync(join(tmpdir(), 'harel-order-'))
const path = join(folder, 'orders.db')
const removeFolder = () => rmSync(folder, { recursive: true, force: true })
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    removeFolder()
    process.exit(1)
  })
}

console.log(`${orders.length} orders; the process that works on them will be killed ${kills} times`)
console.log(`database: ${path}\n`)

let succeeded = false
try {
  await using store = await AsyncSqliteStore.open(path, { traceMax: 0 })
  const progress = new Progress({ commits: expectedCommits(orders), orders: orders.length, kills })
  const run = await supervise(store, { path, orders, kills, onProgress: (...now) => progress.show(...now) })
  progress.end()

  const histories = await readHistories(store)
  printStates(run)
  printTimeline(histories, run)
  printRate(histories, run)
  succeeded = printFindings(await check(store, histories, orders))
} finally {
  if (options.keep || !succeeded) console.log(`\nthe database was kept: ${path}`)
  else removeFolder()
}
process.exitCode = succeeded ? 0 : 1
