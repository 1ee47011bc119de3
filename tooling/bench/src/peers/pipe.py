"""What the programs of Python harel at the other end of a pipe share."""

import asyncio
import os
import sys
import traceback

# Of MongoDB, whose URL names none.
DATABASE = "bench"


async def open_async(url, prefix):
    if url.startswith("redis:"):
        import redis.asyncio
        from harel.engine.aio_store.redis import AsyncRedisStore

        # Waits for a connection, where there would be too many.
        pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=64, timeout=None)
        return AsyncRedisStore(redis.asyncio.Redis(connection_pool=pool), prefix=prefix)
    if url.startswith("postgres:"):
        from harel.engine.aio_store.postgres import AsyncPostgresStore

        return await AsyncPostgresStore.from_dsn(url, prefix=prefix)
    if url.startswith("mongodb:"):
        from harel.engine.aio_store import AsyncMongoStore

        return await AsyncMongoStore.from_url(url, DATABASE, prefix=prefix)
    if url.startswith("http:"):
        from harel.engine.aio_store import AsyncDynamoDBStore

        return await AsyncDynamoDBStore.create(url, prefix=prefix)
    from harel.engine.aio_store.sqlite import AsyncSqliteStore

    return await AsyncSqliteStore.create(url, prefix=prefix)


async def answer_lines(answer):
    """Gives each line of stdin to `answer`, all at once, and prints what it returns. Whatever fails ends the process."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def reply(line):
        try:
            print(await answer(line), flush=True)
        except Exception:
            traceback.print_exc()
            os._exit(1)

    tasks = set()
    async for line in lines:
        task = loop.create_task(reply(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
