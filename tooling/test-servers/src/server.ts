import type { Run } from './run.ts'

export type Origin = 'environment' | 'container' | 'registry package'

/** One process of a server. A single server has one, a cluster several. */
export interface TestNode {
  readonly url: string
  /** Where another server of the same origin reaches it: from one container to the next, not where we do. */
  readonly innerUrl: string
  /** Ends it with SIGKILL; resolves when it is gone. Its data and its port stay. */
  kill(): Promise<void>
  /** Ends it as its manual says; resolves when it is gone. Its data and its port stay. */
  halt(): Promise<void>
  /** Starts it again on the same port and data, ended before or not; resolves when it answers. */
  restart(): Promise<void>
}

/** As the server itself states it: `valkey`, `9.1.2`. The version is empty where it keeps that to itself. */
export interface Product {
  readonly product: string
  readonly version: string
}

export interface TestServer extends Product, AsyncDisposable {
  /** Of the first node, credentials included. */
  readonly url: string
  readonly origin: Origin
  /** False for a server that belongs to somebody else: kill and restart reject. */
  readonly canRestart: boolean
  readonly nodes: readonly TestNode[]
  /** Where a registry package keeps its data and its log while it runs. */
  readonly folder?: string
  /** For people: `postgres 18.6 from registry package`. */
  describe(): string
  /** `kill` of every node. */
  kill(): Promise<void>
  /** `restart` of every node. */
  restart(): Promise<void>
  /** Ends the server and removes its data. Idempotent. */
  stop(): Promise<void>
}

/** No server of the wanted kind can be had on this machine; the message says why. */
export class NoServer extends Error {
  override readonly name = 'NoServer'
}

/** How an image of a kind is run. */
export interface ContainerPlan {
  readonly image: string
  readonly port: number
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  url(host: string, port: number): string
  /** What a fresh server needs before it can serve; repeated until it succeeds, then never again. */
  prepare?(url: string): Promise<void>
}

export interface Flavoured {
  /** Which of the kind's servers; the default is the newest, or `HAREL_TEST_<KIND>_FLAVOUR`. */
  readonly flavour?: string
}

/** One kind of server: how to get it, how to start it, and how to tell that it answers. */
export interface Kind<Options extends Flavoured> {
  readonly name: string
  /** The first is the default. */
  readonly flavours: readonly string[]
  /** What the server says that it is; rejects while it does not answer. */
  identify(url: string): Promise<Product>
  /** What a registry package holds, where the server does not say it, or not exactly. */
  packaged?(flavour: string): Product | undefined
  /** What is done to each node that has been restarted, before `restart` resolves. */
  recover?(url: string): Promise<void>
  /** How to run it from an image; undefined when these options need more than one container gives. */
  container?(flavour: string, options: Options): ContainerPlan | undefined
  /** Installs the server where that has not been done, and starts its nodes. */
  start(run: Run, flavour: string, options: Options): Promise<TestNode[]>
}
