const tasks = new Set<() => void>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs `task` when this process ends in any way that it can notice; the function returned takes it back. */
export function atExit(task: () => void): () => void {
  if (tasks.size === 0) listen()
  tasks.add(task)
  return () => {
    tasks.delete(task)
    if (tasks.size === 0) unlisten()
  }
}

function runAll(): void {
  for (const task of tasks) {
    try {
      task()
    } catch (error) {
      console.error(error)
    }
  }
  tasks.clear()
}

// Whoever else listens gets the signal again: some end the process only when nobody but they listens.
function onSignal(signal: NodeJS.Signals): void {
  runAll()
  unlisten()
  process.kill(process.pid, signal)
}

function listen(): void {
  process.on('exit', runAll)
  for (const signal of signals) process.on(signal, onSignal)
}

function unlisten(): void {
  process.off('exit', runAll)
  for (const signal of signals) process.off(signal, onSignal)
}
