import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Engine, findEngine } from '../src/engine.ts'
import { execute, home, lock } from '../src/install.ts'
import { Run } from '../src/run.ts'

/** The engine that answers here, else one of our own that is installed by apt, keeps its images in the cache and ends with `stop`. */
export async function startEngine(): Promise<{
  engine: Engine
  environment: Record<string, string>
  stop: () => Promise<void>
}> {
  const found = (await findEngine()) ?? (await installEngine())
  if (found) return { engine: found, environment: {}, stop: async () => {} }
  const folder = join(home, 'docker')
  mkdirSync(folder, { recursive: true })
  const unlock = await lock(join(home, 'docker.lock'))
  const run = new Run('dockerd')
  const socketPath = join(run.folder, 'docker.sock')
  const url = `unix://${socketPath}`
  const args = [
    '-H',
    url,
    '--data-root',
    join(folder, 'data'),
    '--exec-root',
    join(folder, 'exec'),
    '--ip',
    '127.0.0.1',
  ]
  args.push('--pidfile', join(run.folder, 'docker.pid'))
  const environment = {
    DOCKER_HOST: url,
    // This may itself be a container, where testcontainers would look for the server on the bridge.
    TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1',
    // Its clean-up container is an image too, and none can be pulled.
    TESTCONTAINERS_RYUK_DISABLED: 'true',
  }
  const stop = async () => {
    await run.close()
    unlock()
  }
  try {
    const ready = async () => {
      if ((await findEngine(url)) === undefined) throw new Error('no answer yet')
    }
    await run.launch({ name: 'dockerd', url, command: 'dockerd', args, ready, discardSignal: 'SIGTERM' })
  } catch (error) {
    await stop()
    throw error
  }
  return { engine: { socketPath }, environment, stop }
}

/** The engine that answers because its package starts it; undefined where the package leaves that to us. */
async function installEngine(): Promise<Engine | undefined> {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) {
    throw new Error('no container engine answers, and one can be installed only by root on Debian')
  }
  if (existsSync('/usr/sbin/dockerd')) return undefined
  await execute('apt-get', ['update', '-qq'])
  await execute('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'docker.io', 'iptables'])
  return findEngine()
}
