"""The AsyncDurableRunner of Python harel: does what a line of stdin says, and answers it by a line of stdout.

The arguments are the URL of the database (a path means SQLite) and the prefix. A line is a call: `create` makes a counter,
`event` lets it take a step, `tree` runs a parent with its child from the beginning to the end.
"""

import asyncio
import json
import os
import sys
import traceback

from harel import Event, definition_from_dsl
from harel.engine.aio.durable import AsyncDurableRunner
from harel.engine.execution import Status

SOURCE = """
event Next {}
machine counter {
  initial A
  state A {}
  state B {}
  from A to B on Next set context.n = context.n + 1
  from B to A on Next set context.n = context.n + 1
}
machine child {
  initial Done
  final Done success
}
machine parent {
  initial Waiting
  state Waiting { invoke child }
  final Ended success
  from Waiting to Ended on Returned
}
"""


async def open_store(url, prefix):
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


async def main(url, prefix):
    definitions = {name: definition_from_dsl(SOURCE, name) for name in ("counter", "child", "parent")}
    runner = AsyncDurableRunner(await open_store(url, prefix), definitions)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def call(line):
        try:
            what, id = json.loads(line)
            if what == "create":
                await runner.create("counter", {"n": 0}, id)
            elif what == "event":
                await runner.process(id, Event(kind="Next"))
            else:
                execution = await runner.create("parent", {}, id)
                assert execution.status == Status.DONE
            print(id, flush=True)
        except Exception:
            traceback.print_exc()
            os._exit(1)

    tasks = set()
    async for line in lines:
        task = loop.create_task(call(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main(*sys.argv[1:]))
