import { spawn } from 'node:child_process'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers'
import type { Engine } from './engine.ts'
import { atExit } from './exit.ts'
import { isAlive, self } from './identity.ts'
import { claimPort, releasePort } from './leftovers.ts'
import type { ContainerPlan, TestNode } from './server.ts'

const START_MS = 60_000
const HALT_S = 10

// Who started a container, so that a later run on the same machine can tell what a dead one has left.
const OWNER = 'harel-test-servers.owner'
const ownerHere = `${hostname()} ${self}`

/**
 * A server from an image, answering, and what removes it. Its port on this machine is fixed, because the engine would
 * give it another one after a restart.
 */
export async function startContainer(
  engine: Engine,
  plan: ContainerPlan,
  ready: (url: string) => Promise<unknown>,
): Promise<{ node: TestNode; stop: () => Promise<void> }> {
  await removeLeftoverContainers()
  const port = await claimPort()
  const started = new GenericContainer(plan.image)
    .withExposedPorts({ container: plan.port, host: port })
    .withEnvironment(plan.environment ?? {})
    .withLabels({ [OWNER]: ownerHere })
    // The server itself is asked below; the usual wait for a port needs a shell in the image.
    .withWaitStrategy(Wait.forAll([]))
  if (plan.command) started.withCommand([...plan.command])
  const container = await started.start().catch((error) => {
    releasePort(port)
    throw error
  })
  const forget = atExit(() => removeLater(engine, container.getId()))
  const url = plan.url(container.getHost(), port)
  const handle = (await getContainerRuntimeClient()).container.getById(container.getId())

  const isRunning = async () => (await handle.inspect()).State.Running
  const until = async (succeeds: (url: string) => Promise<unknown>) => {
    for (const begin = Date.now(); ; await delay(50)) {
      try {
        return await succeeds(url)
      } catch (cause) {
        if ((await isRunning()) && Date.now() - begin < START_MS) continue
        const log = textOf(await handle.logs({ stdout: true, stderr: true, tail: 8 }))
        throw new Error(`a container of ${plan.image} does not answer. The end of its log:\n${log}`, { cause })
      }
    }
  }
  const halt = async () => void ((await isRunning()) && (await handle.stop({ t: HALT_S })))
  const node: TestNode = {
    url,
    innerUrl: plan.url(container.getIpAddress(container.getNetworkNames()[0] ?? ''), plan.port),
    halt,
    async kill() {
      if (!(await isRunning())) return
      await handle.kill({ signal: 'SIGKILL' })
      await handle.wait()
    },
    async restart() {
      await halt()
      await handle.start()
      await until(ready)
    },
  }
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    forget()
    await handle.remove({ force: true, v: true })
    releasePort(port)
  }
  try {
    if (plan.prepare) await until(plan.prepare)
    await until(ready)
  } catch (error) {
    await stop()
    throw error
  }
  return { node, stop }
}

/** The engine sends logs in pieces: eight bytes, of which the last four are the length, then the text. */
function textOf(log: Buffer): string {
  let text = ''
  for (let at = 0; at + 8 <= log.length; at += 8 + log.readUInt32BE(at + 4)) {
    text += log.toString('utf8', at + 8, at + 8 + log.readUInt32BE(at + 4))
  }
  return text
}

async function removeLeftoverContainers(): Promise<void> {
  const { container } = await getContainerRuntimeClient()
  const labelled = await container.dockerode.listContainers({ all: true, filters: { label: [OWNER] } })
  for (const { Id, Labels } of labelled) {
    const [host = '', owner = ''] = (Labels[OWNER] ?? '').split(' ')
    if (host !== hostname() || isAlive(owner)) continue
    // Somebody else may be removing it as well.
    await container
      .getById(Id)
      .remove({ force: true, v: true })
      .catch(() => {})
  }
}

/** Where nothing can be awaited any more, another process sends the request. */
function removeLater(engine: Engine, id: string): void {
  const request = JSON.stringify({ ...engine, method: 'DELETE', path: `/containers/${id}?force=1&v=1` })
  const script = 'require("node:http").request(JSON.parse(process.argv[1])).end()'
  spawn(process.execPath, ['-e', script, request], { detached: true, stdio: 'ignore' }).unref()
}
