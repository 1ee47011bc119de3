/** As faults-writer.ts, but says that a commit is done before it is sent. */
import { setTimeout as sleep } from 'node:timers/promises'
import { runWriter } from '@harel/store-testing/faults'
import { openRemote } from '../faults/memory-server.ts'

await runWriter(({ address = '', ...options }) =>
  openRemote(address, options, async (send, { emits }) => {
    void sleep(20).then(send)
    return { applied: true, seqs: emits.map((_, n) => n + 1) }
  }),
)
