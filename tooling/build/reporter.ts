import { appendFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** What one run of vitest came to; one line of the file that `HAREL_TEST_RESULTS` names. */
export interface Outcome {
  passed: number
  failed: number
  skipped: number
}

/** Adds up the runs of all packages: each appends its outcome to one file, as a line of JSON. */
export default class OutcomeReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const file = process.env.HAREL_TEST_RESULTS
    if (file === undefined) return
    const outcome: Outcome = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      // A file or a group that breaks outside its tests counts as one failure.
      if (module.errors().length > 0) outcome.failed++
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) outcome.failed++
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        outcome[state === 'pending' ? 'failed' : state]++
      }
    }
    appendFileSync(file, `${JSON.stringify(outcome)}\n`)
  }
}
