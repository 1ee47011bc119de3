import type { ExecutionStore } from '@harel/store-base'
import * as fc from 'fast-check'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { cleanUp } from '../fixtures.js'
import { commands, NAMES } from '../model/commands.js'
import { Reference } from '../model/reference.js'
import { assertSame, type World } from '../model/world.js'

/** A test should end within the five seconds that many runners allow. */
const MILLISECONDS = 3000

const numberFrom = (variable: string): number | undefined => {
  const text = process.env[variable]
  return text === undefined || text === '' ? undefined : Number(text)
}

/** Runs random sequences until one disagrees with the model; the shortest that does is shown. */
async function explore(context: CheckContext, handles: number): Promise<void> {
  const { store, open, traceMax, ns, model } = context
  let runs = 0
  const start = async () => {
    const stores: ExecutionStore[] = [store]
    for (let n = 1; n < handles; n++) if (open !== undefined) stores.push(await open({ traceMax }))
    let count = 0
    const world: World = {
      stores,
      ns: `${ns}${runs++}/`,
      held: [],
      next: () => count++,
      reopen: async (handle) => {
        // The first handle belongs to the check.
        if (handle === 0 || open === undefined || stores.length === 1) return
        await stores[1]?.close()
        stores[1] = await open({ traceMax })
      },
    }
    return { model: new Reference(traceMax), real: world }
  }
  const property = fc.asyncProperty(
    fc.commands(commands, { maxCommands: model.commands ?? 60, size: 'max' }),
    async (sequence) => {
      const setup = await start()
      try {
        await fc.asyncModelRun(() => setup, sequence)
        await assertSame(
          setup.model,
          setup.real,
          NAMES.map((name) => setup.real.ns + name),
        )
      } finally {
        await cleanUp(store, setup.real.ns)
        await setup.real.stores[1]?.close()
      }
    },
  )
  const seed = numberFrom('HAREL_TEST_SEED') ?? model.seed
  const result = await fc.check(property, {
    numRuns: numberFrom('HAREL_TEST_RUNS') ?? model.runs ?? 40,
    interruptAfterTimeLimit: model.milliseconds ?? MILLISECONDS,
    ...(seed === undefined ? {} : { seed }),
  })
  if (!result.failed || result.interrupted) return
  throw new Error(`HAREL_TEST_SEED=${result.seed} repeats this\n${fc.defaultReportMessage(result)}`, {
    cause: result.errorInstance,
  })
}

export const modelContract: Contract = {
  name: 'model',
  checks: [
    {
      title: 'random sequences of all methods agree with a simple model',
      run: (context) => explore(context, 1),
    },
    {
      title: 'random sequences of all methods on two handles agree with a simple model',
      needs: ['shared'],
      run: (context) => explore(context, 2),
    },
  ],
}

/** Random sequences of all methods, compared with a simple model. */
export const assertModel = assertionOf(modelContract)
