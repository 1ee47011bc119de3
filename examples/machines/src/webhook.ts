/**
 * A webhook receiver on `node:http`. The sender sends again until it gets an answer, so that each event may come several
 * times, and to several processes; each takes effect once. Run it with `node src/webhook.ts`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { ExecutionAlreadyExists, StoreError } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { DurableRunner, RunnerError } from '@harel/xstate'
import { assign, setup } from 'xstate'

export const paymentMachine = setup({
  types: {
    context: {} as { received: number },
    events: {} as { type: 'payment.received'; amount: number } | { type: 'payment.refunded'; amount: number },
  },
  guards: { complete: ({ context }) => context.received >= 100 },
}).createMachine({
  id: 'payment',
  context: { received: 0 },
  initial: 'open',
  states: {
    open: { always: { guard: 'complete', target: 'paid' } },
    paid: { on: { 'payment.refunded': { target: 'open', actions: assign({ received: 0 }) } } },
  },
  on: {
    'payment.received': { actions: assign({ received: ({ context, event }) => context.received + event.amount }) },
  },
})

type Runner = DurableRunner<readonly [typeof paymentMachine]>
interface Answer {
  status: number
  body: object
}

/** `POST /payments/<id>` with `{ id, type, amount }`; the answer says what became of the event. */
export const receiver = (runner: Runner): Server =>
  createServer(async (request, response) => {
    const { status, body } = await handle(runner, request).catch(failure)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })

async function handle(runner: Runner, request: IncomingMessage): Promise<Answer> {
  const [, id] = /^\/payments\/([\w-]+)$/.exec(request.url ?? '') ?? []
  if (request.method !== 'POST' || id === undefined) return { status: 404, body: { error: 'POST /payments/<id>' } }
  const event = parse(await text(request))
  if (event === undefined) return { status: 400, body: { error: 'no event of a payment' } }
  // The first event of a payment is what starts it.
  await runner.create('payment', { id }).catch((error) => {
    if (!(error instanceof ExecutionAlreadyExists)) throw error
  })
  const { id: eventId, type, amount } = event
  const { outcome } = await runner.send(id, { type, amount }, { eventId })
  return { status: 200, body: { outcome } }
}

function parse(body: string) {
  try {
    const { id, type, amount }: Record<string, unknown> = JSON.parse(body)
    if (type !== 'payment.received' && type !== 'payment.refunded') return undefined
    return typeof id === 'string' && typeof amount === 'number' ? ({ id, type, amount } as const) : undefined
  } catch {
    return undefined
  }
}

/** 5xx is what makes a sender send again. */
function failure(error: unknown): Answer {
  const code = error instanceof RunnerError || error instanceof StoreError ? error.code : 'UNKNOWN'
  return { status: 503, body: { error: code } }
}

/** What the other side does: it sends until it is answered. */
export async function deliver(url: string, event: { id: string; type: string; amount: number }): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(event) }).catch(() => undefined)
    if (response !== undefined && response.status < 500) {
      return { status: response.status, body: (await response.json()) as object }
    }
    if (attempt === 8) throw new Error(`${event.id} could not be delivered`)
    await sleep(50 * 2 ** attempt * Math.random())
  }
}

/** Where it is then to be found. */
export async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export async function demo(path: string, print: (line: string) => void): Promise<void> {
  await using store = await AsyncSqliteStore.open(path)
  await using runner = new DurableRunner(store, { machines: [paymentMachine] })
  const server = receiver(runner)
  const url = `${await listen(server)}/payments/invoice-7`
  const events = [60, 40].map((amount, n) => ({ id: `evt-${n}`, type: 'payment.received', amount }))
  const answers = await Promise.all([...events, ...events, ...events].map((event) => deliver(url, event)))
  print(
    answers
      .map(({ body }) => (body as { outcome: string }).outcome)
      .toSorted()
      .join(' '),
  )
  const { value, context } = await runner.snapshot('invoice-7')
  print(`invoice-7 is ${value}, with ${context.received}`)
  server.close()
}

if (import.meta.main) await demo(':memory:', console.log)
