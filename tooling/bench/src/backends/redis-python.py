"""Commits with harel's AsyncRedisStore: one for each line of stdin, answered by a line of stdout.

The arguments are the URL of the server and the prefix. A line is the execution to go on with, its event and its note.
"""

import asyncio
import json
import sys

import redis.asyncio
from harel.engine.aio_store.redis import AsyncRedisStore
from harel.engine.execution import Execution, Status
from harel.spec.states import Event


async def main(url, prefix):
    # Waits for a connection, where there would be too many.
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=64, timeout=None)
    store = AsyncRedisStore(redis.asyncio.Redis(connection_pool=pool), prefix=prefix)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    held = {}

    async def commit(line):
        id, event_id, note = json.loads(line)
        execution = held.get(id) or Execution(id=id, definition_id="order", status=Status.RUNNING)
        held[id] = execution
        execution.context = {"n": execution.version, "note": note}
        await store.commit(execution, [(id, Event(id=event_id, kind="Shipped"))], processed_event_id=event_id)
        print(id, flush=True)

    tasks = set()
    async for line in lines:
        task = loop.create_task(commit(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main(*sys.argv[1:]))
