import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommitChanges, type Execution, OutcomeUnknown, StoreUnavailable } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { DurableRunner } from '@harel/xstate'
import { SpanStatusCode } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { expect, onTestFinished, test } from 'vitest'
import { setup } from 'xstate'
import { demo as approval } from '../src/approval.ts'
import { demo as saga } from '../src/saga.ts'
import { withSpans } from '../src/spans.ts'
import { deliver, listen, paymentMachine, receiver, demo as webhook } from '../src/webhook.ts'

function freshFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'harel-machines-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'machines.db')
}

/** What a demonstration prints. */
async function printed(demo: (path: string, print: (line: string) => void) => Promise<void>): Promise<string[]> {
  const lines: string[] = []
  await demo(freshFile(), (line) => lines.push(line))
  return lines
}

test('an approval is decided by a manager, by the director after the deadline, or by nobody after both', async () => {
  const lines = await printed(approval)
  expect(lines.toSorted()).toEqual(
    [
      'to manager: a chair for 900?',
      'to manager: a desk for 900?',
      'to manager: a boat for 900?',
      'to requester: a chair is approved',
      'to director: a desk for 900?',
      'to director: a boat for 900?',
      'to requester: a desk is approved',
      'the second click is a duplicate',
      'to requester: a boat is rejected',
      'chair: approved, decided by the manager',
      'desk: approved, decided by the director',
      'boat: rejected, decided by nobody',
    ].toSorted(),
  )
})

test('a trip that cannot be booked, or is cancelled, gives back what was booked, the last one first', async () => {
  const lines = await printed(saga)
  const of = (trip: string) =>
    lines.filter((line) => line.startsWith(`${trip}:`)).map((line) => line.slice(line.indexOf(': ') + 2))
  expect(of('rome')).toEqual(['book flight', 'book hotel', 'book car', 'release hotel', 'release flight', 'DONE'])
  expect(of('oslo')).toEqual([
    ...['book flight', 'book hotel', 'book car'],
    ...['release car', 'release hotel', 'release flight'],
    'CANCELLED',
  ])
  expect(lines).toContain('oslo is CANCELLING')
})

test('a webhook that is sent three times at once takes effect once', async () => {
  expect(await printed(webhook)).toEqual([
    'duplicate duplicate duplicate duplicate handled handled',
    'invoice-7 is paid, with 100',
  ])
})

test.each([
  ['before anything is written', 'handled'],
  ['after it was written', 'duplicate'],
])(
  'a delivery that fails %s is sent again with the same id, succeeds, and takes effect once',
  async (when, outcome) => {
    await using store = await AsyncSqliteStore.open(freshFile())
    const answers: number[] = []
    let commits = 0
    const failing = new Proxy(store, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key, target)
        if (key !== 'commit') return typeof member === 'function' ? member.bind(target) : member
        return async (execution: Execution, changes?: CommitChanges) => {
          // The first one starts the payment.
          commits += 1
          if (commits !== 2) return target.commit(execution, changes)
          if (outcome === 'handled') throw new StoreUnavailable('the server is away')
          await target.commit(execution, changes)
          throw new OutcomeUnknown('the connection was cut')
        }
      },
    })
    await using runner = new DurableRunner(failing, { machines: [paymentMachine] })
    const server = receiver(runner).on('request', (_, response) => {
      response.once('finish', () => answers.push(response.statusCode))
    })
    onTestFinished(() => void server.close())
    const url = `${await listen(server)}/payments/p`
    const event = { id: 'evt-1', type: 'payment.received', amount: 30 }
    expect(await deliver(url, event)).toEqual({ status: 200, body: { outcome } })
    expect([answers, commits], when).toEqual([[503, 200], outcome === 'handled' ? 3 : 2])
    expect(await deliver(url, event)).toEqual({ status: 200, body: { outcome: 'duplicate' } })
    expect((await runner.snapshot('p')).context).toEqual({ received: 30 })
    expect(await store.load('p')).toMatchObject({ version: 2 })
  },
)

test('what nobody answers is sent again until it is given up', async () => {
  await expect(deliver('http://127.0.0.1:1/', { id: 'e', type: 'x', amount: 1 })).rejects.toThrow(
    'could not be delivered',
  )
})

test('each step is a span, with what it came from and what it led to', async () => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  await using store = await AsyncSqliteStore.open(freshFile())
  await using runner = new DurableRunner(withSpans(store, provider.getTracer('test')), { machines: [paymentMachine] })
  await runner.create('payment', { id: 'p' })
  await runner.send('p', { type: 'payment.received', amount: 100 }, { eventId: 'e' })
  await runner.terminate('p')
  const spans = exporter.getFinishedSpans()
  expect(spans.map(({ name }) => name)).toEqual([
    'payment xstate.init',
    'payment payment.received',
    'payment terminate',
  ])
  expect(spans[1]?.attributes).toMatchObject({
    'harel.execution.id': 'p',
    'harel.step.from': 'open',
    'harel.step.to': 'paid',
    'harel.event.id': 'e',
  })
  expect(spans.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true)
})

test('the span of a step that fails has the error, and that of its redrive has none', async () => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  let isBroken = true
  const act = () => {
    if (isBroken) throw new TypeError('no paper is left')
  }
  const machine = setup({ types: { events: {} as { type: 'PRINT' } }, actions: { act } }).createMachine({
    id: 'printer',
    on: { PRINT: { actions: 'act' } },
  })
  await using store = await AsyncSqliteStore.open(freshFile())
  await using runner = new DurableRunner(withSpans(store, provider.getTracer('test')), { machines: [machine] })
  await runner.create('printer', { id: 'p' })
  expect((await runner.send('p', { type: 'PRINT' })).execution.status).toBe('FAILED')
  isBroken = false
  await runner.redrive('p')
  await runner.settled()
  const shown = exporter.getFinishedSpans().map(({ name, status, attributes }) => ({
    name,
    code: status.code,
    message: status.message,
    to: attributes['harel.step.status'],
  }))
  expect(shown.slice(0, 3)).toEqual([
    { name: 'printer xstate.init', code: SpanStatusCode.UNSET, message: undefined, to: 'RUNNING' },
    { name: 'printer PRINT', code: SpanStatusCode.ERROR, message: 'TypeError: no paper is left', to: 'FAILED' },
    { name: 'printer redrive', code: SpanStatusCode.UNSET, message: undefined, to: 'RUNNING' },
  ])
  expect(shown.slice(3).every(({ code }) => code === SpanStatusCode.UNSET)).toBe(true)
})

test('no example is longer than 120 lines', () => {
  const folder = join(import.meta.dirname, '../src')
  for (const name of readdirSync(folder)) {
    expect(readFileSync(join(folder, name), 'utf8').split('\n').length, name).toBeLessThanOrEqual(120)
  }
})
