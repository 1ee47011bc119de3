import { type KindName, type StartOptions, startServer } from './index.ts'
import { NoServer } from './server.ts'

/** What a test file gets: the server, or the reason why there is none. */
export type Provided = { url: string; version: string; description: string } | { url?: never; reason: string }

interface Project {
  provide(key: `server:${string}`, value: Provided): void
}

/**
 * A vitest globalSetup: one server for the whole run of a package, for its test files to fetch with `withServer`. Prints
 * which one served. Without one the test files report themselves as skipped; under `CI=true` the run fails instead.
 */
export function serverSetup<K extends KindName>(kind: K, options?: StartOptions<K>, as: string = kind) {
  return async (project: Project): Promise<(() => Promise<void>) | undefined> => {
    try {
      const server = await startServer(kind, options)
      console.log(server.describe())
      project.provide(`server:${as}`, { url: server.url, version: server.version, description: server.describe() })
      return server.stop
    } catch (error) {
      if (!(error instanceof NoServer) || ['1', 'true'].includes(process.env.CI ?? '')) throw error
      console.warn(error.message)
      project.provide(`server:${as}`, { reason: error.message })
      return undefined
    }
  }
}
