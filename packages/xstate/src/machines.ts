import { isDeepStrictEqual } from 'node:util'
import { checkKey, describe, type ExecutionStore, type JsonValue } from '@harel/store-base'
import type { AnyActorLogic, AnyStateMachine, AnyStateNode } from 'xstate'
import { InvalidMachine, UnknownMachine } from './errors.js'
import { RESERVED_PREFIX } from './reserved.js'

/** The version of a machine that names none. */
const UNVERSIONED = '1'

/** A machine with the names under which executions remember it. */
export interface Definition {
  readonly id: string
  readonly version: string
  readonly machine: AnyStateMachine
  /** As it is kept in the store: functions have no text. */
  readonly shape: JsonValue
}

/** @throws InvalidMachine for what no store takes as an id */
function checkName(what: string, name: unknown): void {
  try {
    checkKey(what, name)
  } catch (refused) {
    throw new InvalidMachine((refused as Error).message)
  }
}

/** @throws InvalidMachine for what is no JSON in its meta, params, … */
function shapeOf(id: string, machine: AnyStateMachine): JsonValue {
  try {
    return JSON.parse(JSON.stringify(machine))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new InvalidMachine(
      `machine ${describe(id)} has what JSON does not carry, in its meta, params or tags: ${reason}`,
      cause,
    )
  }
}

export const isMachine = (logic: unknown): logic is AnyStateMachine =>
  typeof logic === 'object' && logic !== null && 'resolveState' in logic

/**
 * The machines that a runner was given, and those that they invoke or spawn by name. Executions find theirs by id and
 * version alone, never by who happens to relay them.
 */
export class Machines {
  /** By id, each with its versions in the order in which they were given: the last one is for new executions. */
  readonly #byId = new Map<string, Map<string, Definition>>()

  /** @throws InvalidMachine */
  constructor(machines: readonly AnyStateMachine[]) {
    for (const [index, machine] of machines.entries()) this.#add(machine, `machines[${index}]`)
  }

  /** @param where  how messages call it */
  #add(machine: AnyStateMachine, where: string): void {
    if (!isMachine(machine)) {
      throw new InvalidMachine(`${where} must be made by createMachine of XState 5; got ${describe(machine)}`)
    }
    const { id, version = UNVERSIONED } = machine
    if (machine.config.id === undefined) {
      throw new InvalidMachine(`${where} has no id; executions find their machine by it, so give it one`)
    }
    checkName(`the id of ${where}`, machine.config.id)
    if (id.startsWith(RESERVED_PREFIX)) {
      throw new InvalidMachine(`the id of ${where}, ${describe(id)}, is reserved: it begins with ${RESERVED_PREFIX}`)
    }
    checkName(`the version of machine ${describe(id)}`, version)
    const versions = this.#byId.get(id) ?? new Map<string, Definition>()
    const known = versions.get(version)
    if (known?.machine === machine) return
    if (known !== undefined) {
      throw new InvalidMachine(
        `two machines are called ${id}, version ${version}; after a restart one could be taken for the other. ` +
          'Give each its own id or version',
      )
    }
    versions.set(version, { id, version, machine, shape: shapeOf(id, machine) })
    this.#byId.set(id, versions)
    for (const logic of actorsOf(machine)) if (isMachine(logic)) this.#add(logic, `an actor of machine ${describe(id)}`)
  }

  get all(): Definition[] {
    return [...this.#byId.values()].flatMap((versions) => [...versions.values()])
  }

  /** The newest version. @throws UnknownMachine */
  newest(id: string): Definition {
    const newest = [...(this.#byId.get(id)?.values() ?? [])].at(-1)
    if (newest === undefined) throw new UnknownMachine(id, null, this.#names())
    return newest
  }

  knows(id: string): boolean {
    return this.#byId.has(id)
  }

  /** Exactly this version, if it is here. */
  find(id: string, version: string): Definition | undefined {
    return this.#byId.get(id)?.get(version)
  }

  /** @throws UnknownMachine */
  get(id: string, version: string): Definition {
    const found = this.find(id, version)
    if (found === undefined) throw new UnknownMachine(id, version, this.#names())
    return found
  }

  /**
   * Keeps the definitions in the store, so that whoever looks at an execution later can see what it ran on. One that
   * was published with other content under the same version is reported: its executions may be in states that are gone.
   */
  async publish(store: ExecutionStore, now: number, warn: (message: string) => void): Promise<void> {
    for (const { id, version, shape: definition } of this.all) {
      const stored = await store.publishDefinition({ id, version, definition, publishedAt: now })
      if (!isDeepStrictEqual(stored.definition, definition)) {
        warn(`machine ${id} differs from what was published as version ${version}; give it another version`)
      }
    }
  }

  #names(): string[] {
    return this.all.map(({ id, version }) => `${id}, version ${version}`)
  }
}

const nodes = new WeakMap<AnyStateMachine, ReadonlyMap<string, AnyStateNode>>()

/** The states of a machine by their ids. */
export function statesOf(machine: AnyStateMachine): ReadonlyMap<string, AnyStateNode> {
  const known = nodes.get(machine)
  if (known !== undefined) return known
  const below = (node: AnyStateNode): [string, AnyStateNode][] => [
    [node.id, node],
    ...Object.values(node.states).flatMap((inner) => below(inner as AnyStateNode)),
  ]
  const states = new Map(below(machine.root))
  nodes.set(machine, states)
  return states
}

const invokesOf = (node: AnyStateNode | undefined): { src: unknown }[] => [node?.config.invoke ?? []].flat()

const isLogic = (source: unknown): source is AnyActorLogic => typeof source === 'object' && source !== null

/** All that a machine can start by name: its `actors`, and what stands in its `invoke`s. */
function actorsOf(machine: AnyStateMachine): AnyActorLogic[] {
  const inline = [...statesOf(machine).values()].flatMap(invokesOf)
  return [...Object.values(machine.implementations.actors), ...inline.map(({ src }) => src)].filter(isLogic)
}

const INLINE = /^xstate\.invoke\.(\d+)\.(.*)$/s

/** What a machine starts under this name, as XState names it: a key of `actors`, or the place of an `invoke`. */
export function actorLogic(machine: AnyStateMachine, src: string): AnyActorLogic | undefined {
  const [, index, node] = INLINE.exec(src) ?? []
  const source: unknown =
    index === undefined || node === undefined
      ? machine.implementations.actors[src]
      : invokesOf(statesOf(machine).get(node))[Number(index)]?.src
  return isLogic(source) ? source : undefined
}
