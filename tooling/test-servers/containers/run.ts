import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { startEngine } from './dockerd.ts'
import { makeImages } from './images.ts'

// Runs the tests of the packages named as arguments, their servers in containers made of images of this machine:
// `node containers/run.ts @harel/store-redis @harel/store-rqlite`.
const packages = process.argv.slice(2)
const begin = Date.now()
const { engine, environment, stop } = await startEngine()
let tests: ReturnType<typeof spawn> | undefined
// Let the engine end in order, and last: killed, it would leave its containers alone.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => tests?.kill(signal))

const served = new Set<string>()
const counts = new Map<string, number>()
try {
  const images = await makeImages(engine)
  const filters = packages.map((name) => `--filter=${name}`)
  const options = ['--ui=stream', '--env-mode=loose', '--concurrency=1']
  tests = spawn('turbo', ['run', 'test', ...options, ...filters], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...images, ...process.env, ...environment },
  })
  if (tests.stdout) for await (const line of createInterface({ input: tests.stdout })) report(line)
  const [code] = tests.exitCode === null ? await once(tests, 'exit') : [tests.exitCode]
  process.exitCode = code ?? 1
} finally {
  await stop()
}

const sum = [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', ')
console.log(`${packages.length} packages in ${Math.round((Date.now() - begin) / 1000)} s, tests: ${sum}`)
for (const server of served) console.log(`  ${server}`)
if (![...served].some((server) => server.endsWith('from container'))) {
  console.error('No container served.')
  process.exitCode ||= 1
}

function report(line: string): void {
  console.log(line)
  const plain = stripVTControlCharacters(line)
  for (const [server] of plain.matchAll(/\S+ \S+ from (container|environment|registry package)$/g)) served.add(server)
  const tests = /\bTests +(.*)\(\d+\)/.exec(plain)?.[1] ?? ''
  for (const [, count, outcome = ''] of tests.matchAll(/(\d+) (\w+)/g)) {
    counts.set(outcome, (counts.get(outcome) ?? 0) + Number(count))
  }
}
