// A proxy in a process of its own. Prints its URL; a line on its standard input holds it up, and is answered.

import { once } from 'node:events'
import { TcpProxy } from '@harel/store-testing/faults'

const [target = ''] = process.argv.slice(2)
await using proxy = await TcpProxy.to(target)
console.log(proxy.url)
await once(process.stdin, 'data')
proxy.hold()
console.log('held')
await once(process.stdin, 'end')
