"""Messages per second of each connector and of its system's client in a loop.

    ./dev bench connectors [--json] [--only NAME,NAME] [--share N]

Both sides of a row move the same messages of 200 bytes, one after the other, against the same real
server on loopback, with the client's own batching where it has one. `sink` writes them in batches
of 10,000 rows, until the system has confirmed them; `source` is what a run has: for systems that
can be read again the reading of a range, for others the receiver with its journal (each message
is on disk before it is acknowledged) and the reading of the journal. Spark is not part of it.
A machine with two cores runs the server, the other side and the measured one at once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import options
import pyarrow as pa
from clients import SYSTEMS
from clients.system import System

from penstock.formats.raw import Raw, RawConfig
from penstock.sdk import BatchId, Capability, Context, Read, ReceivingSource
from penstock.testing.contract.receiving import Receiving

BYTES = 200
ROWS = 10_000
SILENT = 3.0
COLUMNS = pa.schema([("payload", pa.binary())])
HEADER = "messages a second".ljust(24) + "".join(
    f"{side:>11}" for side in ("client", "sink", "of it", "client", "source", "of it")
)
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Rates:
    """Messages per second; None if the connector lacks the direction."""

    name: str
    client_sends: float | None = None
    sink: float | None = None
    client_takes: float | None = None
    source: float | None = None


class Far:
    """The peer in a separate process. It sends or receives on command."""

    def __init__(self, system: System, sends: int = 0, takes: int = 0) -> None:
        self._go, self._ready = SPAWN.Event(), SPAWN.Event()
        self._process = SPAWN.Process(
            target=_far, args=(system, sends, takes, self._go, self._ready), daemon=True
        )

    def __enter__(self) -> Far:
        self._process.start()
        assert self._ready.wait(60)
        return self

    def go(self) -> None:
        self._go.set()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


def _far(system: System, sends: int, takes: int, go: Any, ready: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if takes:
        system.take(takes, ready.set)
        return
    messages = payloads(sends)
    ready.set()
    go.wait()
    system.send(messages)


def payloads(count: int) -> list[bytes]:
    """Returns distinct messages."""
    return [b"%09d" % number + b"x" * (BYTES - 9) for number in range(count)]


@contextmanager
def taker(system: System, count: int) -> Iterator[None]:
    """Somebody who takes, where nothing can be sent without."""
    if system.how != "listens":
        yield
        return
    with Far(system, takes=count):
        yield


@contextmanager
def sender(system: System, count: int) -> Iterator[Any]:
    """Provides messages; yields a function to call when a receiver is connected."""
    if system.how == "keeps":
        system.send(payloads(count))
        yield lambda: None
        return
    with Far(system, sends=count) as far:
        if system.how == "serves":
            far.go()
            time.sleep(1)
        yield far.go


def client_sends(system: System, count: int) -> float:
    """The rate of the bare client."""
    messages = payloads(count)
    with taker(system, count):
        began = time.monotonic()
        system.send(messages)
        return count / (time.monotonic() - began)


def sink_writes(system: System, count: int) -> float:
    """The rate of the sink."""
    assert system.sink is not None
    sink: Any = system.sink.create(
        system.sink.config_type.model_validate(system.sink_options()), Context("bench", "out")
    )
    sink.format = Raw(RawConfig())
    messages = payloads(count)
    with taker(system, count), closing(sink):
        client = sink.open()
        began = time.monotonic()
        for number, at in enumerate(range(0, count, ROWS)):
            rows = pa.record_batch([pa.array(messages[at : at + ROWS], pa.binary())], COLUMNS)
            batch = BatchId("bench", number)
            writer = sink.writer(client, batch, 0, COLUMNS)
            most = sink.max_rows_per_write or ROWS
            for start in range(0, rows.num_rows, most):
                some = rows.slice(start, most)
                failures = writer.write(some, sink.format.encode(some).payloads)
                assert not failures, failures
            sink.commit(batch, [writer.commit()])
        sink.complete()
        seconds = time.monotonic() - began
        if hasattr(client, "close"):
            client.close()
        return count / seconds


def client_takes(system: System, count: int) -> float:
    """The rate of the bare client."""
    began = 0.0
    with sender(system, count) as go:

        def ready() -> None:
            nonlocal began
            began = time.monotonic()
            go()

        taken = system.take(count, ready)
    seconds = time.monotonic() - began
    return taken / (seconds if taken == count else seconds - 1)


def source_reads(system: System, count: int) -> float:
    """The rate of the source."""
    assert system.source is not None
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        config = system.source.config_type.model_validate(system.options())
        source: Any = system.source.create(config, Context("bench", "in", Path(scratch)))
        if Capability.BYTES in source.capabilities:
            source.format = Raw(RawConfig())
        source.columns = COLUMNS
        with sender(system, count) as go:
            start = source.initial_offset()
            if isinstance(source, ReceivingSource):
                return _received(source, count, go)
            began = time.monotonic()
            taken = _read(source, start, source.latest_offset(start))
            return taken / (time.monotonic() - began)


def _received(source: Any, count: int, go: Any) -> float:
    start = source.initial_offset()
    with closing(Receiving(source)) as receiving:
        receiving.await_ready()
        began = latest = time.monotonic()
        go()
        end = 0
        while end < count and time.monotonic() < latest + SILENT:
            time.sleep(0.005)
            if (now := receiving.journal.end()) > end:
                end, latest = now, time.monotonic()
        again = time.monotonic()
        taken = _read(source, start, source.latest_offset(start))
        return taken / (latest - began + time.monotonic() - again)


def _read(source: Any, start: Any, end: Any) -> int:
    taken = 0
    while start != end:
        stop = source.limit_batch(start, end)
        for partition in source.partitions(start, stop):
            taken += sum(batch.num_rows for batch in source.read(partition, Read()))
        start = stop
    source.close()
    return taken


def measured(kind: type[System], server: Any, share: int) -> Rates:
    """The benchmarks of the connector of a system."""
    count = kind.messages // share
    sends = kind.sink is not None
    takes = kind.source is not None
    return Rates(
        kind.name,
        client_sends(kind(server), count) if sends else None,
        sink_writes(kind(server), count) if sends else None,
        client_takes(kind(server), count) if takes else None,
        source_reads(kind(server), count) if takes else None,
    )


def shown(rates: Rates) -> str:
    """A line of the table."""
    cells = []
    for client, ours in (
        (rates.client_sends, rates.sink), (rates.client_takes, rates.source),
    ):  # fmt: skip
        if client is None or ours is None:
            cells.append(f"{'':>11}{'':>11}{'':>11}")
        else:
            cells.append(f"{client:>11,.0f}{ours:>11,.0f}{ours / client:>11.2f}")
    return f"{rates.name:<24}" + "".join(cells)


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--only", metavar="NAME,NAME", help="names as in the table")
    parser.add_argument("--share", type=int, default=1, help="measure a part of the messages")
    given: argparse.Namespace = parser.parse_args()
    only = given.only.split(",") if given.only else None
    chosen = [kind for kind in SYSTEMS if only is None or any(n in kind.name for n in only)]
    if not given.json:
        print(HEADER)
    found = []
    for kind in chosen:
        with kind.server() as server:
            rates = measured(kind, server, given.share)
        found.append(asdict(rates))
        if not given.json:
            print(shown(rates), flush=True)
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
