/** An OpenTelemetry span for each step of each machine: a store that is observed, and any tracer. */
import { type Execution, type ExecutionStore, observeStore, type Step } from '@harel/store-base'
import { SpanStatusCode, type Tracer } from '@opentelemetry/api'

/** The same store; what is committed through it, by a runner or a command, becomes a span when it has been committed. */
export const withSpans = <S extends ExecutionStore>(store: S, tracer: Tracer): S =>
  observeStore(store, (step, execution) => recordStep(tracer, step, execution))

function recordStep(tracer: Tracer, step: Step, { id, definitionId, version, error }: Execution): void {
  const { cause, command, fromPath, toPath, eventKind, eventId, actions = [] } = step
  const name = `${definitionId} ${command ?? eventKind ?? cause}`
  const span = tracer.startSpan(name, {
    attributes: {
      'harel.execution.id': id,
      'harel.execution.version': version,
      'harel.step.cause': cause,
      'harel.step.from': fromPath ?? '',
      'harel.step.to': toPath ?? '',
      'harel.step.status': step.toStatus,
      'harel.event.id': eventId ?? '',
      'harel.actions': [...actions],
    },
  })
  if (step.toStatus === 'FAILED') span.setStatus({ code: SpanStatusCode.ERROR, message: error ?? '' })
  span.end()
}
