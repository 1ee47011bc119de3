/** Whose code this thread runs, and who allocates, by V8's own profilers. */
import type { HeapProfiler, Profiler, Runtime } from 'node:inspector'
import { Session } from 'node:inspector/promises'

/** `bench`: what leads to an operation and times it. */
const OWNERS = ['code', 'driver', 'node', 'collector', 'bench'] as const

/** `code` is that of a store, or what is written by hand. */
export type Owner = (typeof OWNERS)[number]

export type Shares = Readonly<Record<Owner, number>>

/** Microseconds between two looks at the stack. */
const LOOK_US = 200
/** Bytes between two objects that are looked at, on average. */
const LOOK_BYTES = 16_384

const NOBODY: Shares = { code: 0, driver: 0, node: 0, collector: 0, bench: 0 }

/** The sum of these, of each of so many operations. */
export function sharesOf(parts: readonly Shares[], operations: number): Shares {
  const shares = { ...NOBODY }
  for (const owner of OWNERS) for (const part of parts) shares[owner] += part[owner] / operations
  return shares
}

const BY_HAND = /\/bench\/src\/backends\//

/** @param caller who has called it. @param compiled whose it is if it has no text and `code` has called it */
function ownerOf({ url, functionName }: Runtime.CallFrame, caller: Owner, compiled: Owner): Owner {
  if (functionName === '(garbage collector)') return 'collector'
  // Its first act is to look at all code that there is.
  if (url.startsWith('node:inspector')) return 'bench'
  if (url.startsWith('node:') || functionName === '(program)') return 'node'
  if (url.includes('/node_modules/')) return 'driver'
  if (url.includes('/packages/') || BY_HAND.test(url)) return 'code'
  if (url !== '') return 'bench'
  return caller === 'code' ? compiled : caller
}

async function withSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
  const session = new Session()
  session.connect()
  try {
    return await work(session)
  } finally {
    session.disconnect()
  }
}

/** Waiting for events, and beginning to look, which takes as long as the machine is busy. */
const isNobodys = ({ url, functionName }: Runtime.CallFrame): boolean =>
  functionName === '(idle)' || url.startsWith('node:inspector')

/** Microseconds of this thread; those in which it waits for events are no part of them, those in a call that waits are. */
function timesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Shares {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const owners = new Map<number, Owner>()
  const visit = ({ id, callFrame, children = [] }: Profiler.ProfileNode, caller: Owner) => {
    // V8 counts its own functions as their callers' time: these are the methods of a driver.
    const owner = ownerOf(callFrame, caller, 'driver')
    owners.set(id, owner)
    for (const child of children) {
      const node = byId.get(child)
      if (node !== undefined) visit(node, owner)
    }
  }
  const [root] = nodes
  if (root !== undefined) visit(root, 'node')
  const times = { ...NOBODY }
  for (const [index, id] of samples.entries()) {
    const owner = owners.get(id)
    const node = byId.get(id)
    if (owner !== undefined && node !== undefined && !isNobodys(node.callFrame)) times[owner] += timeDeltas[index] ?? 0
  }
  return times
}

/** Runs something, and tells of whose code this thread was how many microseconds. */
export const timed = <T>(work: () => Promise<T>): Promise<{ result: T; shares: Shares }> =>
  withSession(async (session) => {
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: LOOK_US })
    await session.post('Profiler.start')
    const result = await work()
    const { profile } = await session.post('Profiler.stop')
    return { result, shares: timesOf(profile) }
  })

function bytesOf({ head }: HeapProfiler.SamplingHeapProfile): Shares {
  const bytes = { ...NOBODY }
  const visit = ({ callFrame, selfSize, children }: HeapProfiler.SamplingHeapProfileNode, caller: Owner) => {
    // And here it does not.
    const owner = ownerOf(callFrame, caller, 'code')
    bytes[owner] += selfSize
    for (const child of children) visit(child, owner)
  }
  visit(head, 'node')
  return bytes
}

/** Runs something, and tells whose code has allocated how many bytes on the heap, those included that were collected. */
export const allocated = <T>(work: () => Promise<T>): Promise<{ result: T; shares: Shares }> =>
  withSession(async (session) => {
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: LOOK_BYTES,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
    const result = await work()
    const { profile } = await session.post('HeapProfiler.stopSampling')
    return { result, shares: bytesOf(profile) }
  })
