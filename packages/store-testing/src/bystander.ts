import assert from 'node:assert/strict'
import type { ExecutionStore } from '@harel/store-base'
import type { Probes } from './contract.js'
import { cleanUp, everything, execution, stateOf } from './fixtures.js'

const NAMES = ['a', 'b', 'c']

/** Executions with all that belongs to them under one prefix, while everything is tried under another one. */
export class Bystander {
  readonly #open: () => Promise<ExecutionStore>
  readonly #ns: string
  readonly #probes: Probes
  #planted: Promise<unknown> | undefined

  constructor(open: () => Promise<ExecutionStore>, ns: string, probes: Probes) {
    this.#open = open
    this.#ns = ns
    this.#probes = probes
  }

  /** Stores the executions, once. */
  async plant(): Promise<void> {
    this.#planted ??= this.#with(async (store) => {
      for (const name of NAMES) await store.commit(execution(this.#ns, name), everything(this.#ns, name))
      return this.#look(store)
    })
    await this.#planted
  }

  /** Asserts that everything is as it was planted, down to the numbers of rows, and removes it. */
  async assertUntouched(): Promise<void> {
    const planted = await this.#planted
    await this.#with(async (store) => {
      assert.deepEqual(await this.#look(store), planted)
      await cleanUp(store, this.#ns)
    })
  }

  #look(store: ExecutionStore) {
    const marks = NAMES.map((name) => `${this.#ns}${name}-ev`)
    return stateOf({ store, ns: this.#ns, probes: this.#probes }, [], marks)
  }

  async #with<T>(use: (store: ExecutionStore) => Promise<T>): Promise<T> {
    await using store = await this.#open()
    return await use(store)
  }
}
