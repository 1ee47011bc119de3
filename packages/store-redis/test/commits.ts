import { type CommitChanges, type Execution, newEvent, newExecution } from '@harel/store-base'

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', status: 'RUNNING', ...fields })

/** What a commit can write beside the execution, part by part. */
export const parts = (id: string) =>
  ({
    emits: [
      { targetId: id, event: newEvent({ kind: 'Tick' }) },
      { targetId: null, event: newEvent({ kind: 'Tock' }) },
    ],
    processedEventId: `${id}-event`,
    timers: [
      { action: 'schedule', path: 'P', fireAt: 1.5 },
      { action: 'cancel', path: 'Q' },
    ],
    spawns: [{ childId: `${id}-child`, rootPath: 'R', context: { list: [], object: {} } }],
    trace: { event: 'Tick' },
  }) satisfies CommitChanges

/** Every choice of these parts, none of them included. */
export function shapes(id: string): { name: string; changes: CommitChanges }[] {
  const entries = Object.entries(parts(id))
  return Array.from({ length: 2 ** entries.length }, (_, bits) => {
    const chosen = entries.filter((_part, index) => (bits >> index) & 1)
    return { name: chosen.map(([part]) => part).join(', ') || 'nothing', changes: Object.fromEntries(chosen) }
  })
}
