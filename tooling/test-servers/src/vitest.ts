import { describe, inject, test } from 'vitest'
import type { Provided } from './setup.ts'

declare module 'vitest' {
  interface ProvidedContext {
    [server: `server:${string}`]: Provided
  }
}

/** Tests on the server that `serverSetup` started. Without one they are one skipped test that names the reason. */
export function withServer(as: string, tests: (server: { url: string; version: string }) => void): void {
  const provided: Provided | undefined = inject(`server:${as}`)
  if (provided === undefined) throw new Error(`no globalSetup of this run is serverSetup('${as}')`)
  if (provided.url !== undefined) describe(provided.description, () => tests(provided))
  else test.skip(provided.reason, () => {})
}
