"""Messages of pgoutput: rows with nulls, values that were not sent, and keys before a change."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from penstock.connectors.postgres.changes.messages import Change, parse
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
