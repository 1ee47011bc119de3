import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { startEngine } from './dockerd.ts'
import { makeImages } from './images.ts'

// Runs the tests of the packages named as arguments, their servers in containers made of images of this machine:
// node containers/run.ts @harel/store-redis @harel/store-rqlite
const filters = process.argv.slice(2).map((name) => `--filter=${name}`)
const testProgram = join(import.meta.dirname, '../../build/test.ts')

let tests: ChildProcess | undefined
// The tests end first and the engine after them, in order: killed, it would leave its containers alone.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => (tests ? tests.kill(signal) : process.exit(1)))

const started = await startEngine().catch((error: Error) => {
  console.error(
    `No container engine can be had on this machine, so nothing was tested in containers.\n${error.message}`,
  )
  // As the summary of tests that had no server.
  console.log(`0 passed, 0 failed, ${filters.length} skipped`)
  process.exit()
})
const { engine, environment, stop } = started
try {
  const env = { ...(await makeImages(engine)), ...process.env, ...environment }
  tests = spawn(process.execPath, [testProgram, 'test', ...filters], { stdio: 'inherit', env })
  const [code] = await once(tests, 'exit')
  process.exitCode = code ?? 1
} finally {
  await stop()
}
