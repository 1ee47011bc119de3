import type { DynamodbOptions } from './dynamodb.ts'
import { findEngine } from './engine.ts'
import { removeLeftovers } from './leftovers.ts'
import type { PgbouncerOptions } from './pgbouncer.ts'
import type { PostgresOptions } from './postgres.ts'
import type { RedisOptions } from './redis.ts'
import type { RqliteOptions } from './rqlite.ts'
import { Run } from './run.ts'
import {
  type Flavoured,
  type Kind,
  NoServer,
  type Origin,
  type Product,
  type TestNode,
  type TestServer,
} from './server.ts'

export { NoServer, type Origin, type Product, type TestNode, type TestServer } from './server.ts'
export { serverSetup } from './setup.ts'

export interface OptionsByKind {
  postgres: PostgresOptions
  pgbouncer: PgbouncerOptions
  redis: RedisOptions
  libsql: Flavoured
  rqlite: RqliteOptions
  mongo: Flavoured
  dynamodb: DynamodbOptions
}
export type KindName = keyof OptionsByKind

// Loaded when wanted: a kind brings its driver.
const kinds: { [K in KindName]: () => Promise<Kind<OptionsByKind[K]>> } = {
  postgres: async () => (await import('./postgres.ts')).postgres,
  pgbouncer: async () => (await import('./pgbouncer.ts')).pgbouncer,
  redis: async () => (await import('./redis.ts')).redis,
  libsql: async () => (await import('./libsql.ts')).libsql,
  rqlite: async () => (await import('./rqlite.ts')).rqlite,
  mongo: async () => (await import('./mongo.ts')).mongo,
  dynamodb: async () => (await import('./dynamodb.ts')).dynamodb,
}

export type StartOptions<K extends KindName> = OptionsByKind[K] & {
  /** A server that nobody else uses and that can be killed: never the one of the environment. */
  readonly own?: boolean
}

/**
 * A server of this kind: the one that `HAREL_TEST_<KIND>_URL` names, else one from a container image, else one from a
 * package registry. The environment's server is taken only where no option but the flavour asks for something special.
 * Rejects with `NoServer` when there is none to be had. It ends with this process at the latest.
 */
export async function startServer<K extends KindName>(
  name: K,
  options: StartOptions<K> = {} as StartOptions<K>,
): Promise<TestServer> {
  const kind = await kinds[name]()
  const flavour = options.flavour ?? setting(name, 'FLAVOUR') ?? kind.flavours[0] ?? ''
  if (!kind.flavours.includes(flavour)) {
    throw new RangeError(`${name} has no flavour '${flavour}'; there are ${kind.flavours.join(', ')}`)
  }
  await removeLeftovers()
  return (
    (await fromEnvironment(kind, flavour, options)) ??
    (await fromImage(kind, flavour, options)) ??
    (await fromRegistry(kind, flavour, options))
  )
}

async function fromEnvironment<O extends Flavoured>(
  kind: Kind<O>,
  flavour: string,
  options: O,
): Promise<TestServer | undefined> {
  const isPlain = Object.keys(options).every((option) => option === 'flavour')
  const url = isPlain ? settingOf(kind, flavour, options, 'URL') : undefined
  if (url === undefined) return undefined
  // The URL may hold a password, so no message names it.
  const product = await kind.identify(url).catch((cause) => {
    throw new Error(`the ${kind.name} server that the environment names does not answer: ${cause}`, { cause })
  })
  return describeServer('environment', product, [foreign(url)], {})
}

async function fromImage<O extends Flavoured>(
  kind: Kind<O>,
  flavour: string,
  options: O,
): Promise<TestServer | undefined> {
  const plan = kind.container?.(flavour, options)
  if (plan === undefined) return undefined
  const image = settingOf(kind, flavour, options, 'IMAGE')
  // Who names an image has an engine, however busy it is just now.
  const engine = await (image === undefined ? findEngine() : findEngine(process.env.DOCKER_HOST, 10_000))
  if (engine === undefined && image !== undefined) throw new Error(`no container engine answers to run ${image}`)
  if (engine === undefined) return undefined
  try {
    const { startContainer } = await import('./container.ts')
    const { node, stop } = await startContainer(engine, { ...plan, image: image ?? plan.image }, kind.identify)
    return describeServer('container', await kind.identify(node.url), [node], { stop, recover: kind.recover })
  } catch (error) {
    if (image !== undefined) throw error
    console.warn(`no container of ${plan.image}: ${error instanceof Error ? error.message : error}`)
    return undefined
  }
}

async function fromRegistry<O extends Flavoured>(kind: Kind<O>, flavour: string, options: O): Promise<TestServer> {
  const run = new Run(kind.name)
  try {
    const nodes = await kind.start(run, flavour, options)
    const product = kind.packaged?.(flavour) ?? (await kind.identify(nodes[0]?.url ?? ''))
    return describeServer('registry package', product, nodes, {
      stop: () => run.close(),
      folder: run.folder,
      recover: kind.recover,
    })
  } catch (cause) {
    await run.close()
    throw new NoServer(`no ${kind.name} ${flavour}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

interface ServerParts {
  readonly stop?: () => Promise<void>
  readonly folder?: string
  readonly recover?: ((url: string) => Promise<void>) | undefined
}

function describeServer(
  origin: Origin,
  product: Product,
  nodes: readonly TestNode[],
  { stop = async () => {}, folder, recover }: ServerParts,
): TestServer {
  const every = async (act: (node: TestNode) => Promise<void>) => void (await Promise.all(nodes.map(act)))
  return {
    ...product,
    url: nodes[0]?.url ?? '',
    origin,
    nodes,
    canRestart: origin !== 'environment',
    ...(folder !== undefined && { folder }),
    describe: () => `${`${product.product} ${product.version}`.trim()} from ${origin}`,
    kill: () => every((node) => node.kill()),
    restart: () =>
      every(async (node) => {
        await node.restart()
        await recover?.(node.url)
      }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function foreign(url: string): TestNode {
  const refuse = async () => {
    throw new Error('this server belongs to the environment; ask for one with { own: true } to end it')
  }
  return { url, innerUrl: url, kill: refuse, halt: refuse, restart: refuse }
}

const setting = (...names: string[]): string | undefined =>
  process.env[['HAREL_TEST', ...names].join('_').toUpperCase()] || undefined

/** `HAREL_TEST_POSTGRES_15_URL`; `HAREL_TEST_POSTGRES_URL` as well where the caller asks for no flavour or the default one. */
function settingOf<O extends Flavoured>(kind: Kind<O>, flavour: string, options: O, what: string): string | undefined {
  const isDefault = options.flavour === undefined || flavour === kind.flavours[0]
  return setting(kind.name, flavour, what) ?? (isDefault ? setting(kind.name, what) : undefined)
}
