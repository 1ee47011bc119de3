import { describe, expect, test, vi } from 'vitest'
import { CheckedStore, SyncCheckedStore } from '../src/checked-store.js'
import { OutcomeUnknown, StoreConflict, StoreUnavailable } from '../src/errors.js'
import { type Emit, type Execution, newEvent, newExecution } from '../src/records.js'
import { MapBackend, remote, wrapped } from './map-backend.js'

/** What happens around a commit. */
type Accident = (commit: () => unknown) => unknown

const lost = new OutcomeUnknown('connection reset', new Error('ECONNRESET'))

/** The commit arrives, then this happens, and the reply is lost. */
const lostAfter =
  (meanwhile: () => unknown = () => {}): Accident =>
  (commit) => {
    commit()
    meanwhile()
    throw lost
  }

/** The commit does not arrive; this happens instead. */
const lostBefore =
  (meanwhile: () => unknown = () => {}): Accident =>
  () => {
    meanwhile()
    throw lost
  }

async function stored() {
  const backend = new MapBackend()
  const accidents: Accident[] = []
  const reads: string[] = []
  const shaky = wrapped(backend, (method, call) => {
    if (method !== 'commit') {
      reads.push(method)
      return call()
    }
    return (accidents.shift() ?? ((commit) => commit()))(call)
  })
  const store = new CheckedStore(remote(shaky))
  const execution = newExecution({ definitionId: 'd', id: 'x', context: { n: 1 } })
  await store.commit(execution)
  const other = new SyncCheckedStore(backend)
  return {
    backend,
    store,
    execution,
    other,
    reads,
    /** Another worker commits what is stored, with other contents. */
    otherCommits: (changes = {}) => {
      const theirs = other.load('x') as Execution
      theirs.context = { n: 2 }
      other.commit(theirs, changes)
    },
    next: (...happening: Accident[]) => {
      accidents.push(...happening)
    },
  }
}

const emits = (...ids: string[]): Emit[] => ids.map((id) => ({ targetId: 'y', event: newEvent({ id, kind: 'k' }) }))

describe('a commit whose reply was lost', () => {
  test('has succeeded when its own payload is stored, and the seqs are found by the events', async () => {
    const { store, execution, other, next } = await stored()
    other.commit(newExecution({ definitionId: 'd' }), { emits: emits('foreign') })
    next(lostAfter())
    expect(await store.commit(execution, { emits: emits('a', 'b') })).toEqual([2, 3])
    expect(execution.version).toBe(2)
    expect(await store.commit(execution)).toEqual([])
  })

  test('finds its seqs behind pages of other events, and one event sent twice', async () => {
    const { store, backend, execution, next } = await stored()
    const foreign = (seq: number) => ({ seq, targetId: 'y', event: '{"id":"z","kind":"k"}' })
    backend.outbox = Array.from({ length: 2500 }, (_, seq) => foreign(seq))
    backend.seq = 2500
    next(lostAfter())
    const twice = [...emits('a', 'b'), ...emits('a')]
    expect(await store.commit(execution, { emits: twice })).toEqual([2501, 2502, 2503])
  })

  test('goes by the target too, for one event may be sent to many', async () => {
    const { store, execution, other, next } = await stored()
    const event = newEvent({ id: 'a', kind: 'k' })
    other.commit(newExecution({ definitionId: 'd' }), { emits: [{ targetId: 'w', event }] })
    next(lostAfter())
    const sent = [null, 'y', 'z'].map((targetId) => ({ targetId, event }))
    expect(await store.commit(execution, { emits: sent })).toEqual([2, 3, 4])
  })

  test('is done after all when it had not arrived', async () => {
    const { store, execution, next } = await stored()
    next(lostBefore())
    expect(await store.commit(execution, { emits: emits('a') })).toEqual([1])
    expect(execution.version).toBe(2)
  })

  test('is done after all when it was the first and nothing is stored', async () => {
    const { store, next } = await stored()
    const first = newExecution({ definitionId: 'd', id: 'first' })
    next(lostBefore())
    expect(await store.commit(first)).toEqual([])
    expect(first.version).toBe(1)
  })

  test('is done once when it arrives at last, before its repetition or behind it', async () => {
    const { store, backend, execution, next } = await stored()
    let late: () => unknown = expect.unreachable
    const delayed: Accident = (commit) => {
      late = commit
      throw lost
    }
    next(delayed, (repetition) => {
      late()
      return repetition()
    })
    expect(await store.commit(execution, { emits: emits('a') })).toEqual([1])
    next(delayed)
    expect(await store.commit(execution, { emits: emits('b') })).toEqual([2])
    expect(await late()).toEqual({ applied: false, found: 3 })
    expect(execution.version).toBe(3)
    expect(backend.outbox).toHaveLength(2)
  })

  test('has succeeded when its repetition is lost as well, and its own payload is stored', async () => {
    const { store, execution, next } = await stored()
    for (const [first, again] of [
      [lostBefore, lostAfter],
      [lostAfter, lostBefore],
    ] as const) {
      next(first(), again())
      await store.commit(execution)
    }
    expect(execution.version).toBe(3)
  })

  test('stays unknown when its repetition is lost as well and nothing is stored, for either may still arrive', async () => {
    const { store, backend, execution, next } = await stored()
    const refused: Accident = () => {
      throw new StoreUnavailable('no connection')
    }
    for (const again of [lostBefore(), refused]) {
      next(lostBefore(), again)
      await expect(store.commit(execution)).rejects.toBe(lost)
    }
    expect(execution.version).toBe(1)
    expect(backend.executions.get('x')?.version).toBe(1)
  })

  test('has succeeded when somebody went on from it and its event is recorded', async () => {
    const { store, execution, otherCommits, next } = await stored()
    next(lostAfter(otherCommits))
    expect(await store.commit(execution, { processedEventId: 'e', emits: emits('a') })).toEqual([1])
    expect(execution.version).toBe(2)
    await expect(store.commit(execution)).rejects.toMatchObject({ expected: 2, found: 3 })
  })

  test('is a conflict when somebody else wrote its version, be it for the same event', async () => {
    const { store, execution, otherCommits, next } = await stored()
    next(lostBefore(() => otherCommits({ processedEventId: 'e' })))
    await expect(store.commit(execution, { processedEventId: 'e' })).rejects.toMatchObject({
      code: 'STORE_CONFLICT',
      expected: 1,
      found: 2,
    })
    expect(execution.version).toBe(1)
  })

  test('is a conflict when Python wrote its version, whose payloads have no token', async () => {
    const { store, backend, execution, otherCommits, next } = await stored()
    const python = () => {
      otherCommits()
      const row = backend.executions.get('x')
      if (row !== undefined) backend.executions.set('x', { ...row, data: '{"id":"x","definition_id":"d","version":2}' })
    }
    next(lostBefore(python))
    await expect(store.commit(execution)).rejects.toBeInstanceOf(StoreConflict)
  })

  test('stays unknown when the version moved on and no event tells by whom', async () => {
    const { store, execution, otherCommits, next } = await stored()
    next(lostAfter(otherCommits))
    await expect(store.commit(execution)).rejects.toBe(lost)
    expect(execution.version).toBe(1)
    next(lostBefore(() => [otherCommits(), otherCommits()]))
    await expect(store.commit({ ...execution, version: 3 }, { processedEventId: 'never' })).rejects.toBe(lost)
  })

  test('stays unknown when the execution was purged', async () => {
    const { store, backend, execution, next } = await stored()
    next(lostAfter(() => backend.executions.delete('x')))
    await expect(store.commit(execution, { processedEventId: 'e' })).rejects.toBe(lost)
  })

  test('stays unknown when reading back fails, and says why', async () => {
    const { store, backend, execution, next } = await stored()
    const failure = new Error('ECONNREFUSED')
    next(
      lostAfter(() => {
        vi.spyOn(backend, 'load').mockImplementation(() => {
          throw failure
        })
      }),
    )
    const error = await store.commit(execution).catch((reason) => reason)
    expect(error).toBeInstanceOf(OutcomeUnknown)
    expect(error).toMatchObject({ retryable: false, cause: failure })
    expect(execution.version).toBe(1)
  })

  test('stays unknown when what is stored cannot be read', async () => {
    const { store, backend, execution, next } = await stored()
    next(lostAfter(() => vi.spyOn(backend, 'load').mockReturnValue('{')))
    await expect(store.commit(execution)).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: { code: 'CORRUPT_RECORD' },
    })
  })

  test('is said to be stored when its events have been delivered meanwhile, so that no seqs can be told', async () => {
    const { store, backend, execution, next } = await stored()
    next(lostAfter(() => backend.ackOutbox([1])))
    await expect(store.commit(execution, { emits: emits('a', 'b') })).rejects.toThrow(
      'the commit of execution "x" is stored, but its events have left the outbox',
    )
    expect(backend.executions.get('x')?.version).toBe(2)
  })

  test('is not looked for when the backend knows what it is', async () => {
    const { store, execution, next, reads } = await stored()
    const refused = new StoreUnavailable('no connection')
    next(() => {
      throw refused
    })
    await expect(store.commit(execution)).rejects.toBe(refused)
    next(() => {
      throw new Error('driver')
    })
    await expect(store.commit(execution)).rejects.toBeInstanceOf(StoreUnavailable)
    expect(reads).toEqual([])
  })
})

describe('a commit that was refused', () => {
  /** The driver sends it twice and hands on the second answer. */
  const resent: Accident = (commit) => {
    commit()
    return commit()
  }

  test('by itself, because the driver sent it twice, has succeeded (B58)', async () => {
    const { store, execution, next } = await stored()
    next(resent)
    expect(await store.commit(execution, { emits: emits('a', 'b') })).toEqual([1, 2])
    expect(execution.version).toBe(2)
    const first = newExecution({ definitionId: 'd', id: 'first' })
    next(resent)
    expect(await store.commit(first)).toEqual([])
  })

  test('by somebody else at its version is a conflict, also when they went on meanwhile', async () => {
    const { store, execution, otherCommits, next } = await stored()
    otherCommits({ processedEventId: 'e' })
    await expect(store.commit(execution, { processedEventId: 'e' })).rejects.toMatchObject({ expected: 1, found: 2 })
    execution.version = 2
    otherCommits()
    next((commit) => {
      const verdict = commit()
      otherCommits()
      return verdict
    })
    await expect(store.commit(execution)).rejects.toMatchObject({ expected: 2, found: 3 })
  })

  test('at any other version is not looked at', async () => {
    const { store, execution, otherCommits, reads } = await stored()
    otherCommits()
    otherCommits()
    await expect(store.commit(execution)).rejects.toMatchObject({ expected: 1, found: 3 })
    await expect(store.commit({ ...execution, id: 'none' })).rejects.toMatchObject({ found: null })
    expect(reads).toEqual([])
  })

  test('is not looked at when the backend has seen that the version is of another commit', async () => {
    const { store, execution, otherCommits, next, reads } = await stored()
    otherCommits()
    next((commit) => ({ ...(commit() as object), foreign: true }))
    await expect(store.commit(execution)).rejects.toMatchObject({ expected: 1, found: 2 })
    expect(reads).toEqual([])
  })

  test('is not known to be so when reading back fails', async () => {
    const { store, backend, execution, otherCommits } = await stored()
    otherCommits()
    vi.spyOn(backend, 'load').mockImplementation(() => {
      throw new Error('ECONNREFUSED')
    })
    await expect(store.commit(execution)).rejects.toBeInstanceOf(OutcomeUnknown)
  })
})

test('a synchronous backend has no replies to lose', () => {
  const store = new SyncCheckedStore(
    wrapped(new MapBackend(), (method, call) => {
      if (method === 'load') throw new Error('not to be asked')
      return method === 'commit' ? lostAfter()(call) : call()
    }),
  )
  expect(() => store.commit(newExecution({ definitionId: 'd' }))).toThrow(lost)
})
