"""Messages of pgoutput: rows with nulls, values that were not sent, and keys before a change."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.postgres.changes.messages import Change, parse, table_of_row
from penstock.connectors.postgres.changes.row_columns import columns_of
from penstock.connectors.postgres.changes.stream import ReplicationStream
from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.sdk.database.changes import Unsent
from penstock.sdk.operations import Operation

TABLE = struct.pack(">I", 16_400)


def row(values: Sequence[str | Unsent | None]) -> bytes:
    """Returns the values of a row as the server sends them."""
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, Unsent):
            parts.append(b"u")
        else:
            parts.append(b"t" + struct.pack(">I", len(value.encode())) + value.encode())
    return b"".join(parts)


def test_changes() -> None:
    key, whole = ["7", None, None], ["7", "née", ""]
    partial = [None, Unsent.VALUE, "tun"]
    head = b"w" + bytes(24)
    for data, change in {
        b"I" + TABLE + b"N" + row(whole): Change(16_400, Operation.INSERT, None, whole),
        b"U" + TABLE + b"N" + row(partial): Change(16_400, Operation.UPDATE, None, partial),
        b"U" + TABLE + b"K" + row(key) + b"N" + row(partial): Change(
            16_400, Operation.UPDATE, key, partial
        ),
        b"D" + TABLE + b"O" + row(whole): Change(16_400, Operation.DELETE, whole, None),
    }.items():
        assert parse(data) == change
        assert parse(head + data, len(head)) == change
    assert parse(b"Y" + TABLE) is None


def test_many_rows_are_the_same_as_columns() -> None:
    """Rows of random texts, among them long ones, empty ones and nulls."""
    rng = random.Random(5)
    head, names = b"w" + bytes(24), ["a", "b", "c"]
    values = ["", "n", "née", "x" * 70_000, '\n"\\', "12", None]
    messages = [
        head + form + row(rng.choices(values, k=len(names)))
        for form in rng.choices(
            [b"I" + TABLE + b"N", b"U" + TABLE + b"N", b"D" + TABLE + b"K"], k=300
        )
    ]
    for count in (1, 2, len(messages)):
        changes = [parse(message, len(head)) for message in messages[:count]]
        found = columns_of(messages[:count], len(head), names)
        assert found is not None
        expected = [
            (c.operation, dict(zip(names, c.after or c.before or (), strict=True)))
            for c in changes if isinstance(c, Change)
        ]  # fmt: skip
        assert [*zip(found[0].to_pylist(), found[1].to_pylist(), strict=True)] == expected
    messages.append(head + b"U" + TABLE + b"N" + row(["1", Unsent.VALUE, "2"]))
    assert columns_of(messages, len(head), names) is None


def test_changes_of_one_row() -> None:
    """An update with the row before it has two rows."""
    for data, number in {
        b"I" + TABLE + b"N" + row(["7"]): 16_400,
        b"U" + TABLE + b"N" + row(["7"]): 16_400,
        b"D" + TABLE + b"K" + row(["7"]): 16_400,
        b"U" + TABLE + b"K" + row(["7"]) + b"N" + row(["8"]): None,
        b"B" + bytes(20): None,
    }.items():
        assert table_of_row(b"head" + data, 4) == number


@pytest.mark.quick(1)
@pytest.mark.parametrize("steps", range(6))
def test_a_cancellation_while_data_arrive(steps: int) -> None:
    """The receiver ends at once, also if the stream becomes readable in the same moment."""
    near, far = socket.socketpair()
    stream: Any = ReplicationStream.__new__(ReplicationStream)
    stream._config = PostgresSourceConfig.model_validate(
        {"url": "postgresql://localhost/made_up", "table": "t"}
    )
    stream._last_response, stream._connection = float("inf"), SimpleNamespace(socket=near.fileno())

    async def cancel() -> None:
        waiting = asyncio.create_task(stream._wait(30))
        await asyncio.sleep(0)
        far.send(b"x")
        for _ in range(steps):
            await asyncio.sleep(0)
        if waiting.cancel():
            with pytest.raises(asyncio.CancelledError):
                await waiting

    with near, far:
        asyncio.run(cancel())
