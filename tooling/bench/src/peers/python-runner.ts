/** The runner of Python harel, told by a pipe what to do. */
import { PythonProcess } from './python-process.ts'

export interface PythonRunner {
  /** Makes an execution of `counter`, lets one take a step, or runs a `parent` with its child to the end. */
  call(what: 'create' | 'event' | 'tree', id: string): Promise<void>
  end(): void
}

/** @param url of the database; a path means SQLite */
export function startPython(url: string): PythonRunner {
  const python = new PythonProcess('python-runner.py', url, 'python')
  return { call: (what, id) => python.ask(id, [what, id]), end: () => python.end() }
}
