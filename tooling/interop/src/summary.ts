import type { Reporter, TestModule } from 'vitest/node'

/** Ends the run with one line that sums it up. */
export default class Summary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const broken = unhandledErrors.length + modules.filter((module) => module.errors().length > 0).length
    const passed = tests.filter((test) => test.result().state === 'passed').length
    const failed = tests.filter((test) => test.result().state === 'failed').length + broken
    // After the default reporter.
    process.once('exit', () => console.log(`${passed} passed, ${failed} failed`))
  }
}
