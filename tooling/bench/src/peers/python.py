"""Commits with a store of Python harel: one for each line of stdin, answered by a line of stdout.

The arguments are the kind of store ("sync" or "async"), the URL of its database and its prefix. A line is the execution
to go on with, its event and its note.
"""

import asyncio
import json
import os
import sys
import traceback

from harel.engine.execution import Execution, Status
from harel.spec.states import Event

held = {}


def commit_of(line):
    id, event_id, note = json.loads(line)
    execution = held.get(id) or Execution(id=id, definition_id="order", status=Status.RUNNING)
    held[id] = execution
    execution.context = {"n": execution.version, "note": note}
    return id, (execution, [(id, Event(id=event_id, kind="Shipped"))]), {"processed_event_id": event_id}


def open_sync(url, prefix):
    from harel.engine.store import PostgresStore, RedisStore, SqliteStore

    if url.startswith("redis:"):
        return RedisStore.from_url(url, prefix=prefix)
    if url.startswith("postgres:"):
        return PostgresStore.from_dsn(url, prefix=prefix)
    return SqliteStore(url, prefix=prefix)


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
    from harel.engine.aio_store.sqlite import AsyncSqliteStore

    return await AsyncSqliteStore.create(url, prefix=prefix)


def run_sync(url, prefix):
    store = open_sync(url, prefix)
    for line in sys.stdin:
        id, args, options = commit_of(line)
        store.commit(*args, **options)
        print(id, flush=True)


async def run_async(url, prefix):
    store = await open_async(url, prefix)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def commit(line):
        try:
            id, args, options = commit_of(line)
            await store.commit(*args, **options)
            print(id, flush=True)
        except Exception:
            traceback.print_exc()
            os._exit(1)

    tasks = set()
    async for line in lines:
        task = loop.create_task(commit(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


kind, url, prefix = sys.argv[1:]
if kind == "sync":
    run_sync(url, prefix)
else:
    asyncio.run(run_async(url, prefix))
