"""Messages of the output plugin pgoutput, version 1.

Source: https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from penstock.sdk.database.changes import Unsent, Value
from penstock.sdk.operations import Operation

EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Begin:
    """The start of a transaction, which has committed at `lsn`."""

    lsn: int
    time: dt.datetime
    transaction: int


@dataclass(frozen=True)
class Commit:
    """The end of a transaction; the log continues at `end`."""

    end: int


@dataclass(frozen=True)
class Column:
    """A column of a table, with the numbers of its type and of the length of its values."""

    name: str
    type: int
    modifier: int


@dataclass(frozen=True)
class Table:
    """The columns of a table in the rows that follow.

    The rows before updates and deletes have the columns of `identity`, with `has_whole_rows` all of
    them before each update.
    """

    number: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...]
    has_whole_rows: bool

    @cached_property
    def column_names(self) -> Sequence[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


class Change(NamedTuple):
    """An insert, an update or a delete. `before` has the key, or the whole row, before it."""

    table: int
    operation: Operation
    before: Sequence[Value] | None
    after: Sequence[Value] | None


@dataclass(frozen=True)
class Truncate:
    """The removal of all rows of tables."""

    tables: tuple[int, ...]


Parsed = Begin | Commit | Table | Change | Truncate


def table_of_row(data: bytes, start: int) -> int | None:
    """Returns the table of an insert, a delete, or an update without the row before it.

    These changes have one row. Returns None for other messages.
    """
    kind = data[start]
    is_change = kind in (_INSERT, _DELETE) or (kind == _UPDATE and data[start + 5] == _NEW)
    return _INT32.unpack_from(data, start + 1)[0] if is_change else None


def parse(data: bytes, start: int = 0) -> Parsed | None:
    """Parses the message from `start`; None for one without a meaning here."""
    parser = _PARSERS.get(data[start])
    return None if parser is None else parser(_Reader(data, start + 1))


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position

    def number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self.data, self.position)
        self.position += form.size
        return int(value)

    def byte(self) -> bytes:
        self.position += 1
        return self.data[self.position - 1 : self.position]

    def text(self) -> str:
        end = self.data.index(b"\0", self.position)
        value = self.data[self.position : end].decode()
        self.position = end + 1
        return value

    def row(self) -> list[Value]:
        values: list[Value] = []
        count, data = self.number(_INT16), self.data
        # A position of its own: each attribute takes as long as the rest of the loop.
        position = self.position
        for _ in range(count):
            kind = data[position]
            position += 1
            if kind == NULL:
                values.append(None)
            elif kind == UNSENT:
                values.append(Unsent.VALUE)
            else:
                (length,) = _INT32.unpack_from(data, position)
                start = position + _INT32.size
                position = start + length
                values.append(data[start:position].decode())
        self.position = position
        return values


_INT8, _INT16 = struct.Struct(">B"), struct.Struct(">H")
_INT32, _INT64 = struct.Struct(">I"), struct.Struct(">Q")
_SIGNED32 = struct.Struct(">i")
_INSERT, _UPDATE, _DELETE, _NEW = b"IUDN"
NULL, UNSENT = b"nu"
"""The kinds of values without a text: null, and one that the server has not sent."""


def _begin(reader: _Reader) -> Begin:
    lsn, micros = reader.number(_INT64), reader.number(_INT64)
    return Begin(lsn, EPOCH + dt.timedelta(microseconds=micros), reader.number(_INT32))


def _commit(reader: _Reader) -> Commit:
    reader.number(_INT8), reader.number(_INT64)
    return Commit(reader.number(_INT64))


def _table(reader: _Reader) -> Table:
    number, schema, name = reader.number(_INT32), reader.text(), reader.text()
    has_whole_rows = reader.byte() == b"f"
    columns, identity = [], []
    for _ in range(reader.number(_INT16)):
        is_of_identity = reader.number(_INT8) & 1
        column = reader.text()
        columns.append(Column(column, reader.number(_INT32), reader.number(_SIGNED32)))
        if is_of_identity:
            identity.append(column)
    return Table(number, schema, name, tuple(columns), tuple(identity), has_whole_rows)


def _insert(reader: _Reader) -> Change:
    table = reader.number(_INT32)
    reader.byte()
    return Change(table, Operation.INSERT, None, reader.row())


def _update(reader: _Reader) -> Change:
    table = reader.number(_INT32)
    before = None
    if reader.byte() in (b"K", b"O"):
        before = reader.row()
        reader.byte()
    return Change(table, Operation.UPDATE, before, reader.row())


def _delete(reader: _Reader) -> Change:
    table = reader.number(_INT32)
    reader.byte()
    return Change(table, Operation.DELETE, reader.row(), None)


def _truncate(reader: _Reader) -> Truncate:
    count = reader.number(_INT32)
    reader.byte()
    return Truncate(tuple(reader.number(_INT32) for _ in range(count)))


_PARSERS: Mapping[int, Callable[[_Reader], Parsed]] = dict(
    zip(b"BCRIUDT", (_begin, _commit, _table, _insert, _update, _delete, _truncate), strict=True)
)
