/** Stores of Python harel, told by a pipe what to commit. */
import type { Contender } from '../contender.ts'
import { nextEventId, type Subject } from '../subjects.ts'
import { PythonProcess } from './python-process.ts'

let processes = 0

/** Commits with one event and a dedupe id. */
function commits(kind: 'sync' | 'async', url: string) {
  // Its executions are new ones.
  const python = new PythonProcess('python.py', kind, url, `python_${processes++}`)
  return {
    commit: ({ execution: { id, context } }: Subject) => python.ask(id, [id, nextEventId(), context.note]),
    end: () => python.end(),
  }
}

/** Both kinds of store. The synchronous one commits one after the other. @param url `http` means DynamoDB, a path SQLite */
export function pythonStores(url: string): { contenders: Contender[]; end(): void } {
  const [sync, async] = [commits('sync', url), commits('async', url)]
  return {
    contenders: [
      {
        name: 'Python harel',
        role: 'peer',
        does: { commit: sync.commit },
        isElsewhere: true,
        upTo: 1,
      },
      {
        name: 'Python harel, async',
        role: 'peer',
        does: { commit: async.commit },
        isElsewhere: true,
      },
    ],
    end() {
      sync.end()
      async.end()
    },
  }
}
