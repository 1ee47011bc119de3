import { asyncStore, type ExecutionStore, type StoreCapabilities } from '@harel/store-base'
import { Bystander } from './bystander.js'
import {
  type AnyStore,
  type Check,
  type CheckContext,
  type Contract,
  isSynchronous,
  type ModelOptions,
  type OpenOptions,
  type Probes,
  reasonToSkip,
  runCheck,
  titleOf,
} from './contract.js'
import { contracts } from './contracts/index.js'

/** What vitest, node:test and jest have in common. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown
  test: {
    (name: string, body: () => Promise<void>): unknown
    skip?(name: string, body: () => Promise<void>): unknown
  }
}

/** Registers what is not run, with the reason in its name. */
export function skip({ test }: TestRunner, title: string, reason: string): void {
  const register = test.skip ?? test
  register(`${title} [skipped: ${reason}]`, async () => {})
}

export interface StoreUnderTest {
  /** What the store promises; what it does not promise is skipped, what it does is proven. */
  capabilities: StoreCapabilities
  /** Opens a fresh handle: on the same database each time where `capabilities.shared`, on a new one otherwise. */
  open(options: OpenOptions): AnyStore | Promise<AnyStore>
  /** `open` gives a synchronous store, in whose transactions no contract can wait. Default: false. */
  synchronous?: boolean
  /** Raw access to what is stored under a prefix. Called while tests are registered: connect later. */
  probes?(prefix: string): Probes
  /** The two prefixes under which everything is run. Default: `harel` and `harel2`. */
  prefixes?: readonly [string, string]
  /** The random part of the suite. */
  model?: ModelOptions
}

/** Small, so that a trace overflows soon. */
const TRACE_MAX = 4

/** Closes what a check has opened, whatever became of the check. */
class Handles implements AsyncDisposable {
  readonly #open: StoreUnderTest['open']
  readonly #prefix: string
  readonly #opened: ExecutionStore[] = []

  constructor(open: StoreUnderTest['open'], prefix: string) {
    this.#open = open
    this.#prefix = prefix
  }

  async first(options: Partial<OpenOptions>): Promise<Pick<CheckContext, 'store' | 'original'>> {
    const original = await this.#open({ prefix: this.#prefix, ...options })
    const store = isSynchronous(original) ? asyncStore(original) : original
    this.#opened.push(store)
    return { store, original }
  }

  readonly open = async (options: Partial<OpenOptions> = {}): Promise<ExecutionStore> =>
    (await this.first(options)).store

  async [Symbol.asyncDispose]() {
    for (const store of this.#opened) await store.close()
  }
}

/**
 * Registers every contract, check by check, as tests of any runner. What a store does not promise is registered as
 * skipped, with the reason in its name. On a database that handles share, everything runs under two prefixes.
 */
export function describeStore(runner: TestRunner, name: string, under: StoreUnderTest): void {
  const { capabilities, prefixes = ['harel', 'harel2'], synchronous = false, model = {} } = under
  const run = Math.random().toString(36).slice(2, 8)

  const register = (contract: Contract, check: Check, prefix: string, ns: string, bystander?: Bystander) => {
    const probes = under.probes?.(prefix) ?? {}
    const reason = reasonToSkip(check, { capabilities, probes, canOpen: true, synchronous })
    if (reason !== undefined) {
      skip(runner, titleOf(check), reason)
      return
    }
    runner.test(titleOf(check), async () => {
      await bystander?.plant()
      await using handles = new Handles(under.open, prefix)
      const opened = await handles.first({ traceMax: TRACE_MAX })
      const fixed = { capabilities, prefix, ns, traceMax: TRACE_MAX, open: handles.open, canOpen: true, probes, model }
      await runCheck(contract, check, { ...opened, ...fixed })
    })
  }

  const registerAll = (prefix: string, pass: number, bystander?: Bystander) => {
    for (const contract of contracts) {
      runner.describe(contract.name, () => {
        for (const [index, check] of contract.checks.entries()) {
          register(contract, check, prefix, `${run}-${pass}-${contract.name}-${index}-`, bystander)
        }
      })
    }
  }

  runner.describe(name, () => {
    const [first, second] = prefixes
    if (!capabilities.shared) return registerAll(first, 1)
    runner.describe(`with the prefix ${first}`, () => registerAll(first, 1))
    runner.describe(`with the prefix ${second}`, () => {
      const bystander = new Bystander(
        () => new Handles(under.open, first).open(),
        `${run}-bystander-`,
        under.probes?.(first) ?? {},
      )
      registerAll(second, 2, bystander)
      runner.test(`all this has changed nothing under the prefix ${first} (B35)`, async () => {
        await bystander.plant()
        await bystander.assertUntouched()
      })
    })
  })
}
