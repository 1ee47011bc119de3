"""Commits with a store of Python harel: one for each line of stdin, answered by a line of stdout.

The arguments are the kind of store ("sync" or "async"), the URL of its database and its prefix. A line is the execution
to go on with, its event and its note.
"""

import asyncio
import json
import sys

from harel.engine.execution import Execution, Status
from harel.spec.states import Event
from pipe import DATABASE, answer_lines, open_async

held = {}


def commit_of(line):
    id, event_id, note = json.loads(line)
    execution = held.get(id) or Execution(id=id, definition_id="order", status=Status.RUNNING)
    held[id] = execution
    execution.context = {"n": execution.version, "note": note}
    return id, (execution, [(id, Event(id=event_id, kind="Shipped"))]), {"processed_event_id": event_id}


def open_sync(url, prefix):
    from harel.engine.store import DynamoDBStore, MongoStore, PostgresStore, RedisStore, SqliteStore

    if url.startswith("redis:"):
        return RedisStore.from_url(url, prefix=prefix)
    if url.startswith("postgres:"):
        return PostgresStore.from_dsn(url, prefix=prefix)
    if url.startswith("mongodb:"):
        return MongoStore.from_url(url, DATABASE, prefix=prefix)
    if url.startswith("http:"):
        return DynamoDBStore.create(url, prefix=prefix)
    return SqliteStore(url, prefix=prefix)


def run_sync(url, prefix):
    store = open_sync(url, prefix)
    for line in sys.stdin:
        id, args, options = commit_of(line)
        store.commit(*args, **options)
        print(id, flush=True)


async def run_async(url, prefix):
    store = await open_async(url, prefix)

    async def commit(line):
        id, args, options = commit_of(line)
        await store.commit(*args, **options)
        return id

    await answer_lines(commit)


kind, url, prefix = sys.argv[1:]
if kind == "sync":
    run_sync(url, prefix)
else:
    asyncio.run(run_async(url, prefix))
