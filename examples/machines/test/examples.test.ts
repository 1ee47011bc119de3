import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { DurableRunner } from '@harel/xstate'
import { SpanStatusCode } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { expect, onTestFinished, test } from 'vitest'
import { demo as approval } from '../src/approval.ts'
import { demo as saga } from '../src/saga.ts'
import { withSpans } from '../src/spans.ts'
import { deliver, paymentMachine, demo as webhook } from '../src/webhook.ts'

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

test('no example is longer than 120 lines', () => {
  const folder = join(import.meta.dirname, '../src')
  for (const name of readdirSync(folder)) {
    expect(readFileSync(join(folder, name), 'utf8').split('\n').length, name).toBeLessThanOrEqual(120)
  }
})
