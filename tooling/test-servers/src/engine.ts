import { existsSync } from 'node:fs'
import { type RequestOptions, request } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where a container engine listens, in the terms of node:http. */
export type Engine = Pick<RequestOptions, 'socketPath' | 'host' | 'port'>

/**
 * The container engine that `DOCKER_HOST` names, else one on a usual socket; undefined when none answers in time.
 *
 * @param timeout in milliseconds; one that is free answers at once
 */
export async function findEngine(given = process.env.DOCKER_HOST, timeout = 250): Promise<Engine | undefined> {
  for (const engine of candidates(given)) if (await answers(engine, timeout)) return engine
  return undefined
}

function candidates(given: string | undefined): Engine[] {
  if (given?.startsWith('unix://')) return [{ socketPath: given.slice('unix://'.length) }]
  if (given) return URL.canParse(given) ? [{ host: new URL(given).hostname, port: new URL(given).port || 2375 }] : []
  const sockets = ['/var/run/docker.sock', join(homedir(), '.docker/run/docker.sock')]
  if (process.env.XDG_RUNTIME_DIR) sockets.push(join(process.env.XDG_RUNTIME_DIR, 'docker.sock'))
  return sockets.filter((path) => existsSync(path)).map((socketPath) => ({ socketPath }))
}

function answers(engine: Engine, timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ ...engine, path: '/_ping', timeout }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    ping.on('timeout', () => ping.destroy(new Error('no answer')))
    ping.on('error', () => resolve(false))
    ping.end()
  })
}
