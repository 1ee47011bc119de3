/** The codec, measured against bare JSON. */
import { decodeExecution, prepareCommit } from '@harel/store-base'
import { measureInTurns, timesLonger } from './measure.ts'
import { compare, resultsOf } from './report.ts'
import type { Backend } from './settings.ts'
import { advance, largeSubject } from './workload.ts'

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
        const ratio = compare(timesLonger(timings.codec, timings.JSON), '× the time of JSON', { max: 2 })
        return resultsOf('codec', 'encode and decode, 2 kB', timings, { comparisons: { codec: [ratio] } })
      },
    },
  ],
}
