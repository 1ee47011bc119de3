/** What people use as an outbox today: queues of jobs. A job is made for the event alone, for no state is kept. */
import { Queue } from 'bullmq'
import { makeWorkerUtils } from 'graphile-worker'
import { PgBoss } from 'pg-boss'
import type { Contender } from '../contender.ts'
import { nextEventId, wireEvent } from '../subjects.ts'

export type Peer = Contender & AsyncDisposable

const peer = (name: string, add: () => Promise<unknown>, close: () => Promise<unknown>): Peer => ({
  name,
  role: 'peer',
  does: { commit: add },
  async [Symbol.asyncDispose]() {
    await close()
  },
})

export function bullmq(url: string): Peer {
  const queue = new Queue('bench', { connection: { url } })
  return peer(
    'BullMQ add',
    () => queue.add('event', wireEvent(nextEventId())),
    () => queue.close(),
  )
}

export async function pgBoss(url: string): Promise<Peer> {
  // It neither looks after its tables nor schedules while it is measured.
  const boss = new PgBoss({ connectionString: url, max: 10, supervise: false, schedule: false })
  await boss.start()
  await boss.createQueue('bench')
  return peer(
    'pg-boss send',
    () => boss.send('bench', wireEvent(nextEventId())),
    () => boss.stop({ graceful: false }),
  )
}

export async function graphileWorker(url: string): Promise<Peer> {
  const utils = await makeWorkerUtils({ connectionString: url, maxPoolSize: 10 })
  await utils.migrate()
  return peer(
    'graphile-worker addJob',
    () => utils.addJob('event', wireEvent(nextEventId())),
    async () => await utils.release(),
  )
}
