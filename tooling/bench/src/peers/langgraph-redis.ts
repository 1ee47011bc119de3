/** LangGraph's checkpoints on Redis: they need modules for JSON and for search, and so a server of their own. */
import { RedisSaver } from '@langchain/langgraph-checkpoint-redis'
import { Redis } from 'ioredis'
import type { Contender } from '../contender.ts'
import { redisWithSearch } from '../servers.ts'
import { langgraph } from './langgraph.ts'

export async function langgraphOnRedis(): Promise<Contender & AsyncDisposable> {
  const { url } = await redisWithSearch()
  const saver = await RedisSaver.fromUrl(url)
  return {
    ...langgraph(saver),
    async [Symbol.asyncDispose]() {
      await saver.end()
      const client = new Redis(url)
      await client.flushall()
      client.disconnect()
    },
  }
}
