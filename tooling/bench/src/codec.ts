/** The codec, measured against bare JSON. */
import { decodeExecution, prepareCommit } from '@harel/store-base'
import { measureInTurns, timesLonger } from './measure.ts'
import { compare, resultOf } from './results.ts'
import type { Backend } from './settings.ts'
import { advance, largeSubject } from './subjects.ts'

export const codec: Backend = {
  describe: async () => [],
  measures: [
    {
      name: 'codec',
      async run({ seconds }, onProgress) {
        const subject = largeSubject()
        const { execution, wire } = subject
        const operations = {
          codec: {
            run: () => {
              advance(subject)
              return decodeExecution(prepareCommit(execution).data, execution.id)
            },
          },
          JSON: {
            run: () => {
              advance(subject)
              return JSON.parse(JSON.stringify(wire))
            },
          },
        }
        const timings = await measureInTurns(operations, { seconds, turnMs: 20, repeat: 20, onProgress })
        const ratio = timesLonger(timings.codec, timings.JSON)
        const task = { backend: 'codec', workload: 'encode and decode, 2 kB', concurrency: 1 }
        return [
          {
            ...resultOf({ ...task, variant: 'codec', role: 'store' }, timings.codec),
            ratioToDriver: ratio,
            comparisons: [compare(ratio, '× the time of JSON', { max: 2 })],
          },
          resultOf({ ...task, variant: 'JSON', role: 'driver' }, timings.JSON),
        ]
      },
    },
  ],
}
