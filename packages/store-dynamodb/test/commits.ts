import { type CommitChanges, type Execution, newEvent, newExecution } from '@harel/store-base'

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', status: 'RUNNING', ...fields })

export const emitsOf = (id: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ targetId: id, event: newEvent({ kind: `e${n}` }) }))

/** Something of everything that a commit can write. */
export const everything = (id: string) =>
  ({
    emits: emitsOf(id, 2),
    processedEventId: `${id}-event`,
    timers: [
      { action: 'schedule', path: 'P', fireAt: 1.5 },
      { action: 'cancel', path: 'Q' },
    ],
    spawns: [{ childId: `${id}-child`, rootPath: '', context: { list: [], object: {} } }],
    trace: { event: 'Tick' },
  }) satisfies CommitChanges
