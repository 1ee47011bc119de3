/** What people keep state with today: LangGraph's checkpoints. */
import { type BaseCheckpointSaver, emptyCheckpoint } from '@langchain/langgraph-checkpoint'
import type { Contender } from '../contender.ts'
import { nextEventId, type Subject, wireEvent } from '../subjects.ts'

/**
 * A step of a thread is a checkpoint with the payload of the execution as its state (`put`), then one event as the
 * pending write of a task (`putWrites`).
 */
export function langgraph(saver: BaseCheckpointSaver, more: Pick<Contender, 'isSync'> = {}): Contender {
  const put = ({ execution, wire }: Subject) => {
    const checkpoint = emptyCheckpoint()
    const step = ++execution.processedEvents
    checkpoint.channel_values = { state: wire }
    checkpoint.channel_versions = { state: step }
    const config = { configurable: { thread_id: execution.id, checkpoint_ns: '' } }
    return saver.put(config, checkpoint, { source: 'loop', step, parents: {} }, { state: step })
  }
  const putBoth = async (subject: Subject) => {
    const saved = await put(subject)
    const eventId = nextEventId()
    await saver.putWrites(saved, [['event', wireEvent(eventId)]], eventId)
  }
  return { name: 'langgraph', role: 'peer', does: { state: put, commit: putBoth, full: putBoth }, ...more }
}
