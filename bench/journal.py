"""The journal of receiving sources: appends of one message, and the start after a crash.

    ./dev bench journal [--json] [--seconds N] [--senders N] [--gigabytes N]

Each figure is from one process that appends messages of 200 bytes one by one, each by an append of
its own: `each` syncs every append; `group` has many senders, each of which waits for its append,
that share syncs; `1 s` syncs once a second and no append waits. Then a journal of that size is
made, opened as after a crash (the last segment is verified), and read as a whole.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import options
import pyarrow as pa

from penstock.journal import Bounds, Journal, JournalReader, Message

SCHEMA = pa.schema([("payload", pa.binary())])
MESSAGE = [Message(b"x" * 200)]
PIECE = [Message(b"x" * 1000)] * 10_000
SIZE = 64 << 30


async def appends(journal: Journal, senders: int, seconds: float) -> float:
    """Appends a second."""
    began = time.monotonic()
    count = 0

    async def send() -> None:
        nonlocal count
        while time.monotonic() - began < seconds:
            await journal.append(MESSAGE)
            count += 1

    await asyncio.gather(*(send() for _ in range(senders)))
    return count / (time.monotonic() - began)


def rate(bounds: Bounds, senders: int, seconds: float) -> float:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch,
        Journal(Path(scratch), SCHEMA, bounds) as journal,
    ):
        return asyncio.run(appends(journal, senders, seconds))


def recovery(gigabytes: float) -> tuple[float, float]:
    """The seconds that it takes to open a journal of that size, and to read it."""

    async def fill(journal: Journal) -> None:
        for _ in range(round(gigabytes * 2**30 / 10_000_000)):
            await journal.append(PIECE)

    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        with Journal(Path(scratch), SCHEMA, Bounds(size=SIZE)) as journal:
            asyncio.run(fill(journal))
        began = time.monotonic()
        with Journal(Path(scratch), SCHEMA, Bounds(size=SIZE)):
            opened = time.monotonic() - began
        reader = JournalReader(Path(scratch))
        began = time.monotonic()
        rows = sum(batch.num_rows for _, batch in reader.read(reader.begin(), reader.end()))
        assert rows == reader.end()
        return opened, time.monotonic() - began


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--senders", type=int, default=1_000)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    given = parser.parse_args()
    result: dict[str, Any] = {
        "each": rate(Bounds(size=SIZE, flush="each"), 1, given.seconds),
        "group": rate(Bounds(size=SIZE), given.senders, given.seconds),
        "periodic": rate(Bounds(size=SIZE, flush=1.0), given.senders, given.seconds),
    }
    result["opened"], result["read"] = recovery(given.gigabytes)
    if given.json:
        print(json.dumps(result))
        return
    print(f"appends a second: {result['each']:,.0f} with a sync each")
    print(f"{result['group']:>25,.0f} by {given.senders:,} senders that share syncs")
    print(f"{result['periodic']:>25,.0f} with a sync once a second")
    opened, read = result["opened"], result["read"]
    print(f"{given.gigabytes:g} GB: opened in {opened:.2f} s, read in {read:.2f} s")


if __name__ == "__main__":
    main()
