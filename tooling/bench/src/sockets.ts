/** What goes through the sockets of this process. */
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** In bytes. */
export interface Traffic {
  readonly sent: number
  readonly received: number
}

const open = new Set<Socket>()
let closed: Traffic = { sent: 0, received: 0 }

const sumOf = ({ sent, received }: Traffic, { bytesWritten, bytesRead }: Socket): Traffic => ({
  sent: sent + bytesWritten,
  received: received + bytesRead,
})

// From the beginning: connections that are kept for the next request outlast those who have made them.
subscribe('net.client.socket', (message) => {
  const { socket } = message as { socket: Socket }
  open.add(socket)
  socket.once('close', () => {
    open.delete(socket)
    closed = sumOf(closed, socket)
  })
})

/** All that this process has exchanged with servers since this module was loaded. */
export const traffic = (): Traffic => [...open].reduce(sumOf, closed)
