/** Counts requests in a file, as its child says that it does: counter-server.ts PORT FILE */
import { spawn } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [port = '', file = ''] = process.argv.slice(2)
const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])

const server = createServer((request, response) => {
  if (request.method === 'POST') appendFileSync(file, '.')
  response.end(
    JSON.stringify({ count: readFileSync(file, 'utf8').length, child: child.pid, greeting: process.env.GREETING }),
  )
})
server.listen(Number(port), '127.0.0.1')
