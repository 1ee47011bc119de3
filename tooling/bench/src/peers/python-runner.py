"""The AsyncDurableRunner of Python harel: does what a line of stdin says, and answers it by a line of stdout.

The arguments are the URL of the database (a path means SQLite) and the prefix. A line is a call: `create` makes a counter,
`event` lets it take a step, `tree` runs a parent with its child from the beginning to the end.
"""

import asyncio
import json
import sys

from harel import Event, definition_from_dsl
from harel.engine.aio.durable import AsyncDurableRunner
from harel.engine.execution import Status
from pipe import answer_lines, open_async

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


async def main(url, prefix):
    definitions = {name: definition_from_dsl(SOURCE, name) for name in ("counter", "child", "parent")}
    runner = AsyncDurableRunner(await open_async(url, prefix), definitions)

    async def call(line):
        what, id = json.loads(line)
        if what == "create":
            await runner.create("counter", {"n": 0}, id)
        elif what == "event":
            await runner.process(id, Event(kind="Next"))
        else:
            execution = await runner.create("parent", {}, id)
            assert execution.status == Status.DONE
        return id

    await answer_lines(call)


asyncio.run(main(*sys.argv[1:]))
