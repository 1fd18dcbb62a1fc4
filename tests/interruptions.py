"""Connections that are cut or stalled in the middle of writes and reads, by a gate to a server."""

from __future__ import annotations

import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from database_tables import read, write
from penstock.core.errors import PenstockError, Transient
from penstock.sdk import Context, Read
from servers.gate import Gate

SECONDS = 60
"""The time after which a call counts as one that waits for ever."""
T = TypeVar("T")
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


class Interruptions:
    """Interruptions by a gate. Messages have the address of a server, and not the secret."""

    def __init__(self, gate: Gate, secret: str, address: str | None = None) -> None:
        self.gate, self._secret = gate, secret
        self._address = address or f"127.0.0.1:{gate.port}"
        self.batches = 0

    def through(self, options: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Returns options with the gate in the URL."""
        url = re.sub(r"(?<=127\.0\.0\.1):\d+", f":{self.gate.port}", options["url"])
        return {**options, "url": url, **more}

    def check_writes(self, write: Callable[[int], Any], cuts: int = 5, stalls: int = 2) -> None:
        """Writes batches whose connections are cut, and stalled, at points between their bytes.

        A batch is written again until it succeeds. `write` takes the number of a batch.
        """
        self._repeat(partial(write, 0))
        before = self.gate.passed
        self._repeat(partial(write, 1))
        size, number = self.gate.passed - before, 2
        for points, action in ((cuts, self.gate.stop), (stalls, self.gate.pause)):
            for place in range(points):
                self.gate.after(size * place // points + 1, action)
                self._attempt(partial(write, number))
                self._repeat(partial(write, number))
                number += 1
        self.batches = number

    def _repeat(self, call: Callable[[], T]) -> T:
        """Calls again after transient errors.

        The server may not have ended what it received late, and a busy machine is slow.
        """
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return ends(call)
            except Transient as error:
                self.check_text(error)
                if time.monotonic() > deadline:
                    raise

    def check_reads(self, read: Callable[[], T], cuts: int = 4, stalls: int = 2) -> T:
        """Reads while connections are cut and stalled, as `check_writes` does.

        A reading that succeeds, and one after each interruption, returns the same. Returns it.
        """
        expected = self._repeat(read)
        before = self.gate.passed
        assert self._repeat(read) == expected
        size = self.gate.passed - before
        for points, action in ((cuts, self.gate.stop), (stalls, self.gate.pause)):
            for place in range(points):
                self.gate.after(size * place // points + 1, action)
                found = self._attempt(read)
                assert found in (None, expected)
                assert self._repeat(read) == expected
        return expected

    def _attempt(self, call: Callable[[], T]) -> T | None:
        """Calls while connections are interrupted. A failure is transient, and names the server."""
        try:
            return ends(call)
        except Transient as error:
            self.check_text(error)
            return None
        finally:
            self.gate.heal()

    def check_text(self, error: PenstockError) -> None:
        """Checks that an error, with its causes, has the address and not the secret."""
        text = "".join(traceback.format_exception(error))
        assert self._secret not in text and self._secret not in repr(error.__dict__)
        assert self._address in f"{error.message} {error.detail}", error.message


def check_cut_responses(gate: Gate, request: Callable[[], T], size: int = 0) -> T:
    """Ends connections at points before the last `size` bytes. Returns the result of the request.

    The request always returns the same, or fails with OSError or Transient.
    """
    request()
    before = gate.passed
    expected = request()
    for place in range(1, gate.passed - before - size, 40):
        gate.after(place, gate.drop)
        with suppress(OSError, Transient):
            assert request() == expected
        gate.heal()
    return expected


def ends(call: Callable[[], T]) -> T:
    """Calls a function in a thread, and fails if it does not end."""
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        stack = traceback.format_stack(sys._current_frames()[thread.ident or 0])
        raise AssertionError(f"still waiting after {SECONDS} s\n{''.join(stack)}")
    if errors:
        raise errors[0]
    return found[0]


def check_table(
    interruptions: Interruptions, sink: Any, source: Any, options: dict[str, Any], *,
    key: tuple[str, ...] = (), looks_up: bool = True,
) -> None:  # fmt: skip
    """Writes, reads and looks up the rows of a table over connections that are interrupted.

    Each row is stored once. Without a `key` rows are appended.
    """
    rows = 40

    def write_batch(number: int) -> None:
        ids = [*range(number * rows, (number + 1) * rows)]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(ids), pa.array([f"name {id_} " * 9 for id_ in ids])], schema=COLUMNS
        )
        made = sink.create(sink.config_type.model_validate(options), Context(node="out"))
        made.mode, made.primary_key = "upsert" if key else "append", key
        with closing(made):
            assert write(made, batch, number) == {}

    def read_rows() -> list[int]:
        made = source.create(source.config_type.model_validate(options))
        made.columns = COLUMNS
        with closing(made):
            found, errors, _ = read(made)
        assert errors == []
        return sorted(row["id"] for row in found)

    def look_up() -> list[int]:
        lookup = source.create(source.config_type.model_validate(options), Context(lookup=True))
        lookup.primary_key = ("id",)
        lookup.prepare_lookup()
        lookup.columns = COLUMNS
        keys = pa.RecordBatch.from_arrays([pa.array([1, 5, -1])], names=["id"])
        with closing(lookup):
            client, asked = lookup.open(), Read()
            found = lookup.lookup(client, keys, asked).to_pylist()
            lookup.close_client(client)
        assert asked.bad == []
        return sorted(row["id"] for row in found)

    interruptions.check_writes(write_batch)
    expected = [*range(interruptions.batches * rows)]
    assert interruptions.check_reads(read_rows) == expected
    if looks_up:
        assert interruptions.check_reads(look_up, 2, 1) == [1, 5]
