import type { StoreBackend, Verdict } from './backend.js'
import { decodeExecution } from './decode.js'
import { quote } from './describe.js'
import { OutcomeUnknown } from './errors.js'
import { MAX_LIMIT } from './listing.js'
import type { PreparedCommit } from './prepare.js'
import type { Awaitable } from './protocol.js'

type Backend = Pick<Awaitable<StoreBackend>, 'commit' | 'load' | 'isProcessed' | 'pendingOutbox'>

/**
 * What became of a commit where the backend's answer does not tell: its reply was lost, or it was refused by just the
 * version that it writes itself, as happens to a commit that was sent twice.
 *
 * @throws OutcomeUnknown when this cannot be told
 */
export const resolveOutcome = (backend: Backend, commit: PreparedCommit, answer: Promise<Verdict>): Promise<Verdict> =>
  answer.then(
    (verdict) => {
      if (verdict.applied || verdict.foreign || verdict.found !== commit.version) return verdict
      return resolveRefusal(backend, commit, verdict)
    },
    (error: unknown) => {
      if (error instanceof OutcomeUnknown && !error.untold) return resolveLostReply(backend, commit, error)
      throw error
    },
  )

async function resolveRefusal(backend: Backend, commit: PreparedCommit, refusal: Verdict): Promise<Verdict> {
  const data = await readBack(() => backend.load(commit.id))
  return carriesToken(data, commit) ? applied(backend, commit) : refusal
}

/**
 * Sends the commit once more. Its guard makes that harmless, and afterwards the lost request can do nothing any more,
 * should it still be under way: the version that it needs is gone. Reading back alone would not do, for the request may
 * arrive behind the question.
 */
async function resolveLostReply(backend: Backend, commit: PreparedCommit, lost: OutcomeUnknown): Promise<Verdict> {
  const { id, version, processedEventId } = commit
  const verdict = await sendAgain(backend, commit, lost)
  if (verdict?.applied) return verdict
  const data = await readBack(() => backend.load(id))
  if (carriesToken(data, commit)) return applied(backend, commit)
  const found = data === undefined ? null : await readBack(() => decodeExecution(data, id).version)
  // Each version is written once, and this one by somebody else.
  if (found === version) return { applied: false, found }
  // Somebody went on from there. The event was handled once, by this commit or by another worker's.
  if (found !== null && found > version && processedEventId !== undefined) {
    if (await readBack(() => backend.isProcessed(id, processedEventId))) return applied(backend, commit)
  }
  throw lost
}

/** @returns undefined when this reply was lost as well */
async function sendAgain(backend: Backend, commit: PreparedCommit, lost: OutcomeUnknown): Promise<Verdict | undefined> {
  try {
    return await backend.commit(commit)
  } catch (error) {
    if (error instanceof OutcomeUnknown && !error.untold) return undefined
    throw lost
  }
}

const carriesToken = (data: string | undefined, { token }: PreparedCommit): boolean => data?.includes(token) ?? false

/** The seqs are those of the rows that hold the texts of the events: event ids are unique, and so are the texts. */
async function applied(backend: Backend, { id, emits }: PreparedCommit): Promise<Verdict> {
  const seqs: number[] = []
  let after = -1
  while (seqs.length < emits.length) {
    const rows = await readBack(() => backend.pendingOutbox({ limit: MAX_LIMIT, after }))
    for (const { seq, targetId, event } of rows) {
      const next = emits[seqs.length]
      if (event === next?.event && targetId === next.targetId) seqs.push(seq)
      after = seq
    }
    if (seqs.length < emits.length && rows.length < MAX_LIMIT) {
      throw new OutcomeUnknown(`the commit of execution ${quote(id)} is stored, but its events have left the outbox`)
    }
  }
  return { applied: true, seqs }
}

async function readBack<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw new OutcomeUnknown('whether the commit was applied is unknown: reading back failed', error)
  }
}
