/** Keeps a worker running and kills it now and then. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ExecutionStore, executions } from '@harel/store-base'
import type { OrderInput } from './machine.ts'
import { expectedCommits } from './workload.ts'

/** All executions at one moment. */
export interface Survey {
  /** Commits made so far. */
  commits: number
  /** How many orders are in a state, by its path. */
  orders: ReadonlyMap<string, number>
  ordersDone: number
  /** Events that were committed and are not delivered yet, and children whose entries are still there. */
  undelivered: number
}

/** The end of a worker; `at` is in epoch seconds. */
export interface Kill {
  at: number
  survey: Survey
}

/** Times are in epoch seconds. */
export interface Run {
  began: number
  ended: number
  kills: Kill[]
  /** The workers' process ids, in the order in which they were started. */
  workers: (number | undefined)[]
  /** All executions at the end. */
  survey: Survey
}

export interface Task {
  /** The database file, on which `store` is open. */
  path: string
  orders: readonly OrderInput[]
  kills: number
  onProgress(survey: Survey, kills: number): void
}

/** Nothing more is expected after so long without a commit, in milliseconds. */
const PATIENCE = 15_000

/** Until all orders are done, or nothing moves any more. */
export async function supervise(
  store: ExecutionStore,
  { path, orders, kills: wanted, onProgress }: Task,
): Promise<Run> {
  const run: Run = { began: Date.now() / 1000, ended: 0, kills: [], workers: [], survey: await takeSurvey(store) }
  const startWorker = () => {
    const worker = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), [path, String(orders.length)])
    run.workers.push(worker.pid)
    return worker
  }
  const moments = killingMoments(orders, wanted)
  let worker = startWorker()
  process.once('exit', () => worker.kill('SIGKILL'))
  let moved = Date.now()
  while (run.survey.ordersDone < orders.length || run.survey.undelivered > 0) {
    const asked = Date.now()
    const survey = await takeSurvey(store)
    if (survey.commits > run.survey.commits) moved = asked
    run.survey = survey
    onProgress(survey, run.kills.length)
    // Breathing space, to be no burden where there are many orders; and chance.
    await setTimeout(20 + 4 * (Date.now() - asked) + 30 * Math.random())

    const reason = worker.exitCode ?? worker.signalCode
    if (reason !== null) throw new Error(`worker ${run.workers.length} ended by itself: ${reason}`)
    if (Date.now() - moved > PATIENCE) {
      console.error(`no commit for ${PATIENCE / 1000} s; giving up`)
      break
    }
    if (survey.commits > (moments[run.kills.length] ?? Number.POSITIVE_INFINITY)) {
      worker.kill('SIGKILL')
      await once(worker, 'exit')
      run.kills.push({ at: Date.now() / 1000, survey: await takeSurvey(store) })
      worker = startWorker()
    }
  }
  run.ended = Date.now() / 1000
  const exit = once(worker, 'exit')
  worker.disconnect()
  const [code] = await exit
  if (code !== 0) throw new Error(`worker ${run.workers.length} failed when it was let go: ${code}`)
  return run
}

/** Numbers of commits: one at random in each of as many equal parts of the first nine tenths of the work. */
function killingMoments(orders: readonly OrderInput[], kills: number): number[] {
  const most = 0.9 * expectedCommits(orders)
  return Array.from({ length: kills }, (_, n) => ((n + Math.random()) / kills) * most)
}

async function takeSurvey(store: ExecutionStore): Promise<Survey> {
  let commits = 0
  let ordersDone = 0
  const orders = new Map<string, number>()
  for await (const { definitionId, activePath, status, version } of executions(store, { limit: 1000 })) {
    if (!definitionId.startsWith('harel.')) commits += version
    if (definitionId !== 'order' || activePath === null) continue
    orders.set(activePath, (orders.get(activePath) ?? 0) + 1)
    if (status === 'DONE') ordersDone += 1
  }
  const undelivered = (await store.pendingOutbox()).length + (await store.pendingSpawns()).length
  return { commits, orders, ordersDone, undelivered }
}
