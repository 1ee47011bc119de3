import type { ExecutionStore } from '@harel/store-base'
import * as fc from 'fast-check'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { cleanUp } from '../fixtures.js'
import { budgetOf } from '../model/budget.js'
import { commands, NAMES } from '../model/commands.js'
import { Reference } from '../model/reference.js'
import { assertSame, type World } from '../model/world.js'

const MILLISECONDS_TO_SHRINK = 1500

/** Runs random sequences until one disagrees with the model; the shortest that does is shown. */
async function explore(context: CheckContext, handles: number): Promise<void> {
  const { store, open, traceMax, ns, model } = context
  let sequence = 0
  const start = async () => {
    const stores: ExecutionStore[] = [store]
    for (let n = 1; n < handles; n++) stores.push(await open({ traceMax }))
    let count = 0
    const world: World = {
      stores,
      ns: `${ns}${sequence++}/`,
      held: [],
      next: () => count++,
      reopen: async (handle) => {
        // The first handle belongs to the check.
        if (handle === 0 || stores.length === 1) return
        await stores[1]?.close()
        stores[1] = await open({ traceMax })
      },
    }
    return { model: new Reference(traceMax), real: world }
  }
  const sequences = fc.commands(commands, { maxCommands: model.commands ?? 60, size: 'max' })
  let shrinkUntil = Number.POSITIVE_INFINITY
  const property = fc.asyncProperty(sequences, async (steps) => {
    if (performance.now() > shrinkUntil) return
    const setup = await start()
    try {
      await fc.asyncModelRun(() => setup, steps)
      const ids = NAMES.map((name) => setup.real.ns + name)
      await assertSame(setup.model, setup.real, ids)
    } catch (error) {
      shrinkUntil = Math.min(shrinkUntil, performance.now() + MILLISECONDS_TO_SHRINK)
      throw error
    } finally {
      await cleanUp(store, setup.real.ns)
      await setup.real.stores[1]?.close()
    }
  })
  const { seed: first, runs, deadline } = budgetOf(model)
  // A seed for each sequence, so that the seed of a failure leads to it at once.
  for (let seed = first; seed < first + runs && performance.now() < deadline; seed++) {
    // Biased, the first sequence of a seed is a short one.
    const result = await fc.check(property, { seed, numRuns: 1, unbiased: true })
    if (result.failed) {
      const report = `HAREL_TEST_SEED=${seed} repeats this\n${fc.defaultReportMessage(result)}`
      throw new Error(report, { cause: result.errorInstance })
    }
  }
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
