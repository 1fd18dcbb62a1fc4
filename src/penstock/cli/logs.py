"""`penstock logs`: the log of the runs of a pipeline of a server."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from penstock.cli.server_options import Data, PipelineName, Server, connect

if TYPE_CHECKING:
    from penstock.server_client import ServerClient

Follow = Annotated[bool, Parameter(name=("--follow", "-f"), help="Print new lines until Ctrl-C.")]
Run = Annotated[str | None, Parameter(metavar="ID", help="Only the lines of a run.")]
Level = Annotated[
    Literal["debug", "info", "warning", "error"], Parameter(help="The minimum level of the lines.")
]
Lines = Annotated[
    int,
    Parameter(
        metavar="N", help="The number of last lines; 100 by default, at most 5000.",
        validator=validators.Number(gte=1, lte=5000),
    ),
]  # fmt: skip
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{5,20}Z")
PERIOD = 1.0
MOST = 5000
RETRY_SECONDS = 60.0
"""The time for which the lines of a server that is away are awaited."""
_HEAD = ("timestamp", "level", "event", "pipeline", "run")


def logs(
    name: PipelineName, /, *, follow: Follow = False, run: Run = None, level: Level = "info",
    lines: Lines = 100, server: Server = None, data: Data = None,
) -> None:  # fmt: skip
    """Print the last lines of the log of a pipeline of a server.

    The log has the lines of all runs, also of those that were killed.

      penstock logs shop
      penstock logs shop -f --level warning
      penstock logs shop --run 1f0c2b7a9d3e --lines 1000
    """
    client = connect(server, data)
    id = client.pipeline(name).id
    found = client.logs(id, run=run, level=level, limit=lines)
    _print(found)
    if follow:
        for more in _new_lines(client, id, run, level, found):
            _print(more)


def _new_lines(
    client: ServerClient, id: str, run: str | None, level: str, known: list[dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    """Yields lines as they arrive. Raises Transient if the server is away for a minute."""
    from penstock.core.errors import Transient

    answered = time.monotonic()
    while True:
        time.sleep(PERIOD)
        times = (str(each.get("timestamp")) for each in reversed(known))
        since = next(filter(_TIME.fullmatch, times), None)
        try:
            found = client.logs(id, run=run, level=level, limit=MOST, since=since)
        except Transient as error:
            if time.monotonic() - answered > RETRY_SECONDS:
                raise
            print(f"{error.message}; trying again", file=sys.stderr)
            continue
        answered = time.monotonic()
        fresh = new_lines(known, found)
        if len(fresh) == MOST:
            print(f"lines before the last {MOST} are left out", file=sys.stderr)
        if fresh:
            known = found
            yield fresh


def new_lines(
    known: list[dict[str, Any]], found: list[dict[str, Any]]
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns the found lines after the last known one.

    Of lines of one time those that are known are left out.
    """
    for size in range(min(len(known), len(found)), 0, -1):
        if known[-size:] == found[:size]:
            return found[size:]
    return found


def _print(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        print(_format(line), flush=True)


def _format(line: Mapping[str, Any]) -> str:
    import json

    from penstock.core.text import printable

    facts = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in line.items()
        if name not in _HEAD
    ]
    stamp, level = str(line.get("timestamp", ""))[:19], str(line.get("level", "info"))
    words = (stamp, level.ljust(7), str(line.get("event", "")), *facts)
    return printable(" ".join(words).replace("\n", "\\n").strip())
