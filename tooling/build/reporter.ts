import { appendFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'

/** What one run of vitest came to; one line of the file that `HAREL_TEST_RESULTS` names. */
export interface Outcome {
  passed: number
  failed: number
  skipped: number
  /** Of each failure where it was, and its first line. */
  failures: string[]
}

const root = join(import.meta.dirname, '../..')

type Failure = { readonly message: string }

const failure = (where: string, [error]: readonly Failure[] = []): string =>
  `${where}: ${error?.message.split('\n', 1)[0] ?? 'it has not ended'}`

/** Adds up the runs of all packages: each appends its outcome to one file, as a line of JSON. */
export default class OutcomeReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly Failure[]): void {
    const results = process.env.HAREL_TEST_RESULTS
    if (results === undefined) return
    const outcome: Outcome = { passed: 0, failed: 0, skipped: 0, failures: [] }
    const fail = (where: string, errors: readonly Failure[] = []) => {
      outcome.failed++
      outcome.failures.push(failure(where, errors))
    }
    for (const error of unhandledErrors) fail('outside of all tests', [error])
    for (const module of modules) {
      // A file or a group that breaks outside its tests counts as one failure.
      const file = relative(root, module.moduleId)
      const where = (name: string) => `${file} > ${name}`
      if (module.errors().length > 0) fail(file, module.errors())
      for (const suite of module.children.allSuites()) {
        if (suite.errors().length > 0) fail(where(suite.fullName), suite.errors())
      }
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result()
        if (state === 'passed' || state === 'skipped') outcome[state]++
        else fail(where(test.fullName), errors)
      }
    }
    appendFileSync(results, `${JSON.stringify(outcome)}\n`)
  }
}
