import { configDefaults, defineConfig } from 'vitest/config'
import { findEngine } from './src/engine.ts'

const withoutEngine = (await findEngine()) ? [] : ['test/container.server.test.ts']

export default defineConfig({
  test: {
    include: ['test/*.test.ts'],
    exclude: [...configDefaults.exclude, ...withoutEngine],
    globalSetup: 'test/redis.setup.ts',
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
})
