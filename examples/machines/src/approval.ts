/**
 * An approval with a human and a deadline. A request waits for a manager, then for the director, then it is rejected;
 * deploys and crashes in between change nothing. Run it with `node src/approval.ts`.
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { currentEffect, DurableRunner } from '@harel/xstate'
import { assign, setup } from 'xstate'

export interface Request {
  item: string
  amount: number
  /** How long a manager, and then the director, has to decide, in milliseconds. */
  deadline: number
}

/** Sends a mail. The key lets the mail service see that it was asked before. */
export type Notify = (to: string, text: string, key: string) => void

const approvalMachine = (notify: Notify) =>
  setup({
    types: {
      input: {} as Request,
      context: {} as Request & { decidedBy: string | null },
      events: {} as { type: 'APPROVE'; by: string } | { type: 'REJECT'; by: string },
      output: {} as { decidedBy: string | null },
    },
    delays: { deadline: ({ context }) => context.deadline },
    actions: {
      ask: ({ context }, { who }: { who: string }) =>
        notify(who, `${context.item} for ${context.amount}?`, currentEffect().idempotencyKey),
      tell: ({ context }, { what }: { what: string }) =>
        notify('requester', `${context.item} is ${what}`, currentEffect().idempotencyKey),
    },
  }).createMachine({
    id: 'approval',
    context: ({ input }) => ({ ...input, decidedBy: null }),
    initial: 'waiting',
    states: {
      waiting: {
        initial: 'forManager',
        states: {
          forManager: {
            entry: { type: 'ask', params: { who: 'manager' } },
            after: { deadline: 'forDirector' },
          },
          forDirector: {
            entry: { type: 'ask', params: { who: 'director' } },
            after: { deadline: '#approval.rejected' },
          },
        },
        on: {
          APPROVE: { target: 'approved', actions: assign({ decidedBy: ({ event }) => event.by }) },
          REJECT: { target: 'rejected', actions: assign({ decidedBy: ({ event }) => event.by }) },
        },
      },
      approved: { type: 'final', entry: { type: 'tell', params: { what: 'approved' } } },
      rejected: { type: 'final', entry: { type: 'tell', params: { what: 'rejected' } } },
    },
    output: ({ context }) => ({ decidedBy: context.decidedBy }),
  })

/** Three requests: one is approved, one is escalated first, one is forgotten. Between the two, the process is replaced. */
export async function demo(path: string, print: (line: string) => void): Promise<void> {
  const machines = [approvalMachine((to, text) => print(`to ${to}: ${text}`))] as const
  const request = { amount: 900, deadline: 300 }
  {
    await using store = await AsyncSqliteStore.open(path)
    await using runner = new DurableRunner(store, { machines })
    await runner.create('approval', { id: 'chair', input: { item: 'a chair', ...request } })
    await runner.create('approval', { id: 'desk', input: { item: 'a desk', ...request } })
    await runner.create('approval', { id: 'boat', input: { item: 'a boat', ...request } })
    await runner.send('chair', { type: 'APPROVE', by: 'the manager' })
  }
  // A deploy: nobody is there when the first deadlines pass.
  await sleep(400)
  await using store = await AsyncSqliteStore.open(path)
  await using runner = new DurableRunner(store, { machines, maxPause: 0.1 })
  const running = runner.run()
  const hasStatus = async (id: string, path: string) => (await store.load(id))?.activePath === path
  while (!(await hasStatus('desk', 'waiting.forDirector'))) await sleep(20)
  // The director clicks twice.
  const click = () => runner.send('desk', { type: 'APPROVE', by: 'the director' }, { eventId: 'click-1' })
  await click()
  print(`the second click is a ${(await click()).outcome}`)
  while (!(await hasStatus('boat', 'rejected'))) await sleep(20)
  for (const id of ['chair', 'desk', 'boat']) {
    const { value, output } = await runner.snapshot(id)
    print(`${id}: ${value}, decided by ${output?.decidedBy ?? 'nobody'}`)
  }
  await runner.close()
  await running
}

if (import.meta.main) await demo(join(tmpdir(), `approval-${process.pid}.db`), console.log)
