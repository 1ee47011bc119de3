import { describe, expect, test } from 'vitest'
import { children } from './examples/children.js'
import { delays } from './examples/delays.js'
import type { Example } from './examples/example.js'
import { forms } from './examples/forms.js'
import { games } from './examples/games.js'
import { kept } from './examples/kept.js'
import { promises } from './examples/promises.js'
import { inXState, onRunners } from './examples/run.js'
import { spawned } from './examples/spawned.js'

const examples: readonly Example[] = [...promises, ...delays, ...children, ...games, ...forms, ...kept, ...spawned]

describe('a machine with the features of an example of XState, restarted before each event, comes to the same as in XState', () => {
  const titled = examples.map((example) => [`${example.of} (${example.machine.id})`, example] as const)
  test.each(titled)('%s', async (_, example) => {
    const moments = await inXState(example)
    expect(moments).toHaveLength(example.script.length + 1)
    await onRunners(example, moments)
  })
})
