"""Python harel at the other end of a pipe: reads a call per line of stdin, answers each with a line of stdout.

A call is [verb, argument, ...] on the store whose URL and prefix are the arguments of the program. The answer is
{"value": ...} or {"error": ...}. Steps of a scenario are those of scenario.json.
"""

import asyncio
import inspect
import json
import sys
from urllib.parse import urlsplit

from harel import DurableRunner, definition_from_dsl, testing
from harel.engine import aio_store, control
from harel.engine.execution import Execution, Status
from harel.engine.store import (
    DynamoDBStore,
    MongoStore,
    PostgresStore,
    RedisStore,
    SqliteStore,
    StoreConflict,
    TimerOp,
)
from harel.spec.states import Event


class FilledRedisStore(RedisStore):
    """Reads on over empty pages, which RedisStore returns beside other keys: harel's contract expects items in the first."""

    def list_executions(self, **query):
        page = super().list_executions(**query)
        while not page.items and page.next_cursor is not None:
            page = super().list_executions(**{**query, "cursor": page.next_cursor})
        return page


class FilledAsyncRedisStore(aio_store.AsyncRedisStore):
    """As FilledRedisStore."""

    async def list_executions(self, **query):
        page = await super().list_executions(**query)
        while not page.items and page.next_cursor is not None:
            page = await super().list_executions(**{**query, "cursor": page.next_cursor})
        return page


# One row per kind of database, by the scheme of its URL: how its store and the asynchronous twin are opened on the
# place that the URL names, and whether they list in order.
STORES = {
    "dynamodb": (DynamoDBStore.create, aio_store.AsyncDynamoDBStore.create, False),
    "sqlite": (SqliteStore, aio_store.AsyncSqliteStore.create, True),
    "postgres": (PostgresStore.from_dsn, aio_store.AsyncPostgresStore.from_dsn, True),
    "redis": (FilledRedisStore.from_url, FilledAsyncRedisStore.from_url, False),
    "mongodb": (MongoStore.from_url, aio_store.AsyncMongoStore.from_url, True),
}

# Regions, an invoked machine, timeouts and a lifetime: everything that a runner keeps in a store.
PARCEL = """
event Pay { amount: float }
event Go {}
machine Parcel {
  initial Packing
  ttl 86400
  context { stamps: int = 0 }
  state Packing { timeout 30 }
  orthogonal Checks {
    with { stamps: stamps }
    state Weight {
      initial Unknown
      state Unknown {}
      final Known success
      from Unknown to Known on Go
    }
    state Customs {
      initial Open
      state Open { timeout 600 }
      final Cleared success
      from Open to Cleared on Go
    }
  }
  state Billing {
    invoke {
      initial Unbilled
      state Unbilled {}
      final Billed success
      from Unbilled to Billed
    }
  }
  state Delivery { timeout 600 }
  final Delivered success
  final Lost lost
  from Packing to Checks on Pay set context.stamps = context.stamps + 1
  from Packing to Lost on Timeout
  from Checks to Billing
  from Billing to Delivery on Returned
  from Delivery to Delivered on Go
  from Delivery to Lost on Timeout
}
"""

# The executions that a scenario holds under its names, and the seqs of their last commits.
held = {}
seqs = {}


def play(store, part):
    store.trace_max = part["trace_max"]
    for step in part["steps"]:
        match step:
            case {"op": "commit"}:
                commit(store, step)
            case {"op": "load", "id": id, "execution": name}:
                held[name] = store.load(id)
            case {"op": "ack_outbox", "execution": name, "index": index}:
                store.ack_outbox(seqs[name][index])
            case {"op": "ack_first_spawn", "parent": parent}:
                store.ack_spawn(min(entry.seq for entry in store.pending_spawns() if entry.parent_id == parent))
            case {"op": "append_trace", "id": id, "trace": trace}:
                store.append_trace(id, trace)
            case {"op": "delete_timer", "id": id, "path": path, "fire_at": fire_at}:
                store.delete_timer(id, path, fire_at)
            case {"op": "purge", "id": id, "version": version, "purged": purged}:
                expect(f"the purge of {id}", store.purge(id, version), purged)
            case _:
                raise ValueError(f"there is no step {step}")


def commit(store, step):
    name = step["execution"]
    if "set" in step:
        before = held[name].model_dump() if name in held else {}
        held[name] = Execution.model_validate({**before, **step["set"]})
    timers = step.get("timers", ())
    conflict = None
    try:
        seqs[name] = store.commit(
            held[name],
            [(target, Event.model_validate(event)) for target, event in step.get("emits", ())],
            processed_event_id=step.get("processed"),
            timers=[TimerOp("cancel", path) if at is None else TimerOp("schedule", path, at) for path, at in timers],
            spawns=[tuple(spawn) for spawn in step.get("spawns", ())],
            trace=step.get("trace"),
        )
    except StoreConflict as refused:
        conflict = [refused.expected, refused.found]
    expect(f"the conflict of {name}", conflict, step.get("conflict"))


def expect(what, found, wanted):
    if found != wanted:
        raise AssertionError(f"{what} gives {found}, not {wanted}")


def summaries(store, cursor=None, **filters):
    page = store.list_executions(limit=7, cursor=cursor, **filters)
    yield from page.items
    if page.next_cursor is not None:
        yield from summaries(store, page.next_cursor, **filters)


def canonical(store, ns, known_events, prefixes):
    """What `canonical` of @harel-tooling/canonical reads, as Python sees it."""

    def ids(**filters):
        return sorted(item.id for item in summaries(store, **filters) if item.id.startswith(ns))

    def dump(record):
        return record.model_dump(mode="json")

    everything = ids()
    outbox = [entry for entry in store.pending_outbox() if entry.target_id is None or entry.target_id.startswith(ns)]
    spawns = [entry for entry in store.pending_spawns() if entry.parent_id.startswith(ns)]
    return {
        "executions": {id: dump(store.load(id)) for id in everything},
        "listing": {
            "all": sorted((dump(s) for s in summaries(store) if s.id.startswith(ns)), key=lambda item: item["id"]),
            "roots": ids(roots_only=True),
            "status DONE|CANCELLED": ids(status=[Status.DONE, Status.CANCELLED]),
            "definition Statuses": ids(definition_id="Statuses"),
            "RUNNING roots of OrderFlow": ids(status=[Status.RUNNING], roots_only=True, definition_id="OrderFlow"),
        },
        "outbox": [
            {"seq": rank + 1, "target_id": entry.target_id, "event": dump(entry.event)}
            for rank, entry in enumerate(outbox)
        ],
        "spawns": [
            {"seq": rank + 1, **{key: getattr(entry, key) for key in ("parent_id", "child_id", "root_path", "context")}}
            for rank, entry in enumerate(spawns)
        ],
        "timers": sorted(list(timer) for timer in store.due_timers(1e18) if timer[0].startswith(ns)),
        "trace": {id: steps for id in everything if (steps := store.read_trace(id))},
        "processed": {id: [name for name in known_events if store.is_processed(id, name)] for id in everything},
        "ids_with_prefix": {prefix: sorted(store.ids_with_prefix(ns + prefix)) for prefix in prefixes},
    }


def contracts(store, ns, ordered):
    testing.assert_listing_contract(store, ordered=ordered, ns=ns + "listing-")
    testing.assert_purge_contract(store, ns=ns + "purge-")
    testing.assert_outbox_contract(store, ns=ns + "outbox-")


async def async_contracts(opening, ns, ordered):
    store = await opening if inspect.isawaitable(opening) else opening
    await testing.assert_async_listing_contract(store, ordered=ordered, ns=ns + "listing-")
    await testing.assert_async_purge_contract(store, ns=ns + "purge-")
    await testing.assert_async_outbox_contract(store, ns=ns + "outbox-")
    await store.close()


def add(store, id, by):
    """Loads an execution, counts in its context who has added to it, and commits; False when somebody was faster."""
    execution = store.load(id)
    execution.context[by] = execution.context.get(by, 0) + 1
    event = Event(id=f"{id}:{execution.version + 1}", kind="Added")
    try:
        store.commit(execution, [(id, event)], processed_event_id=event.id)
        return True
    except StoreConflict:
        return False


class Control:
    """Commands on executions, and what a monitor shows of them: whoever runs them does not matter to it."""

    def __init__(self, store):
        self.store = store

    def command(self, name, id):
        commands = {"suspend": control.suspend, "resume": control.resume, "terminate": control.terminate}
        commands[name](self.store, id)
        return self.show(id)

    def show(self, id):
        shown = self.store.load(id)
        return None if shown is None else [shown.status.value, shown.active_path]

    def list(self, filters):
        return sorted([s.id, s.definition_id, s.status.value, s.active_path] for s in summaries(self.store, **filters))

    def purge(self, id):
        return control.purge(self.store, id)


class Drive:
    """Runs a machine of Python's, step by step, at a time that stands still within a step."""

    def __init__(self, store):
        definition = definition_from_dsl(PARCEL, "Parcel")
        self.definition_id = definition.id
        self.now = 1_700_000_000.25
        self.runner = DurableRunner(
            store, {definition.id: definition}, clock=lambda: self.now, trace=True, execution="inline"
        )

    def create(self, id):
        return self.told(self.runner.create(self.definition_id, {"note": "é"}, execution_id=id))

    def send(self, id, kind, data):
        self.now += 1.5
        return self.told(self.runner.process(id, Event(id=f"{id}:{kind}:{self.now}", kind=kind, data=data)))

    def wait(self, seconds):
        self.now += seconds
        return self.runner.fire_due_timers()

    def told(self, execution):
        return [execution.status.value, execution.active_path]


def place(url):
    """What the stores take for the URL of a database: its address, and its name where that is an argument of its own."""
    kind, _, rest = url.partition("+" if url.startswith("dynamodb") else "://")
    if kind in ("dynamodb", "sqlite"):
        return [rest]
    return [url, urlsplit(url).path[1:]] if kind == "mongodb" else [url]


def main(url, prefix):
    open_store, open_async_store, ordered = STORES[url.split(":")[0].split("+")[0]]
    store = open_store(*place(url), prefix=prefix)
    drive = Drive(store)
    commands = Control(store)
    verbs = {
        "play": lambda part: play(store, part),
        "canonical": lambda *arguments: canonical(store, *arguments),
        "contracts": lambda ns: contracts(store, ns, ordered),
        "async_contracts": lambda ns: asyncio.run(
            async_contracts(open_async_store(*place(url), prefix=prefix), ns, ordered)
        ),
        "add": lambda *arguments: add(store, *arguments),
        "create": drive.create,
        "send": drive.send,
        "wait": drive.wait,
        "command": commands.command,
        "show": commands.show,
        "list": commands.list,
        "purge": commands.purge,
    }
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        try:
            answer = {"value": verbs[verb](*arguments)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    store.close()


main(*sys.argv[1:])
