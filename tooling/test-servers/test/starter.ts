import { startServer } from '../src/index.ts'

// A process that starts a server, says where, and then ends in the way that its argument names.
const server = await startServer('redis', { own: true })
console.log(JSON.stringify({ url: server.url, folder: server.folder }))
const ends: Record<string, () => unknown> = {
  exit: () => process.exit(),
  throw: () => setImmediate(() => Promise.reject(new Error('on purpose'))),
  finish: () => {},
  wait: () => setInterval(() => {}, 1000),
}
ends[process.argv[2] ?? '']?.()
