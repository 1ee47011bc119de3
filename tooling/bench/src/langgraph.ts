/** What people keep state with today: LangGraph's checkpoints. */
import { type BaseCheckpointSaver, emptyCheckpoint } from '@langchain/langgraph-checkpoint'
import { BYTES, nextEventId, wireEvent } from './workload.ts'

const THREADS = 4096
const STATE = { n: 100_000, note: 'x'.repeat(BYTES) }

/**
 * Saves one step of the next thread: a checkpoint with a state as large as the payload of a commit, then one event as the
 * pending write of a task.
 */
export function stepsOf(saver: BaseCheckpointSaver): () => Promise<void> {
  let steps = 0
  return async () => {
    const step = ++steps
    const config = { configurable: { thread_id: `thread-${step % THREADS}`, checkpoint_ns: '' } }
    const checkpoint = emptyCheckpoint()
    checkpoint.channel_values = { state: { ...STATE, n: step } }
    checkpoint.channel_versions = { state: step }
    const saved = await saver.put(config, checkpoint, { source: 'loop', step, parents: {} }, { state: step })
    const eventId = nextEventId()
    await saver.putWrites(saved, [['event', wireEvent(eventId)]], eventId)
  }
}
