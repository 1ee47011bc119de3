/** What the types of machines say about the calls of a runner. */
import type { AnyStateMachine, EmittedFrom, EventFromLogic, InputFrom, StateMachine } from 'xstate'

/** The schema of a machine: its config, as far as XState keeps that in the type. */
type SchemaOf<Machine> =
  Machine extends StateMachine<
    infer _Context,
    infer _Event,
    infer _Children,
    infer _Actor,
    infer _Action,
    infer _Guard,
    infer _Delay,
    infer _StateValue,
    infer _Tag,
    infer _Input,
    infer _Output,
    infer _Emitted,
    infer _Meta,
    infer Schema,
    infer _TransitionMeta
  >
    ? Schema
    : never

/** The id of a machine, as far as its type tells: that of `setup().createMachine` does, others are `string`. */
export type IdOf<Machine> = Machine extends AnyStateMachine
  ? SchemaOf<Machine> extends { id: infer Id extends string }
    ? Id
    : string
  : never

type Named<Machine, Id> = Machine extends AnyStateMachine
  ? string extends IdOf<Machine>
    ? never
    : Id extends IdOf<Machine>
      ? Machine
      : never
  : never

type Unnamed<Machine> = Machine extends AnyStateMachine ? (string extends IdOf<Machine> ? Machine : never) : never

/** Those of the machines that have this id; where none is known to, those whose types do not tell. */
export type MachineById<Machine, Id> = [Named<Machine, Id>] extends [never] ? Unnamed<Machine> : Named<Machine, Id>

export type CreateOptions<Machine> = {
  /** Default: a random one. */
  id?: string
  /** 0 (default) to 4; for whoever lists or claims by it. */
  priority?: number
} & (undefined extends InputFrom<Machine> ? { input?: InputFrom<Machine> } : { input: InputFrom<Machine> })

/** The options of `create` as an argument: they may be left out where the machine needs no input. */
export type CreateArguments<Machine> =
  undefined extends InputFrom<Machine> ? [options?: CreateOptions<Machine>] : [options: CreateOptions<Machine>]

/** What may be sent from outside: what the machine takes, without what XState itself tells machines. */
export type Sendable<Machine extends AnyStateMachine> = Exclude<
  EventFromLogic<Machine>,
  { readonly type: `xstate.${string}` }
>

type Declared<Machine> = Machine extends AnyStateMachine
  ? string extends EmittedFrom<Machine>['type']
    ? never
    : EmittedFrom<Machine>
  : never

/** What the machines say that they emit; where none says anything, anything. */
export type Emitted<Machine extends AnyStateMachine> = [Declared<Machine>] extends [never]
  ? EmittedFrom<Machine>
  : Declared<Machine>

/** The events that a listener for this type gets; `*` is for all of them. */
export type EmittedOf<Machine extends AnyStateMachine, Type> = Type extends '*'
  ? EmittedFrom<Machine>
  : string extends Emitted<Machine>['type']
    ? Emitted<Machine> & { type: Type }
    : Extract<Emitted<Machine>, { type: Type }>
