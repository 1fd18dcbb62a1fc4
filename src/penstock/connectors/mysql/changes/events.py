"""Events of the binary log, as changes of tables and the ends of transactions.

Source: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.mysql.changes.columns import columns_in_log
from penstock.connectors.mysql.changes.gtids import Gtids
from penstock.connectors.mysql.changes.positions import LogFile, LogPlace
from penstock.connectors.mysql.changes.statements import Effect, effect_of
from penstock.connectors.mysql.changes.unknown import unknown_changes
from penstock.connectors.mysql.changes.values import Column, Image, columns_of, read_row
from penstock.core.errors import Permanent
from penstock.sdk.database.changes import LostChanges, Transaction, Unsent, Value, has_unsent
from penstock.sdk.database.types import declared_type
from penstock.sdk.operations import Operation

_PARTIAL, _INCIDENT, _ANONYMOUS, _TAGGED = 39, 26, 34, 42
_COMPRESSED = frozenset({40, 165, 166, 167, 168, 169, 170, 171})
_STANDALONE = 1


Place = tuple[str, str]
"""The database and the name of a table."""


@dataclass(frozen=True)
class Begin:
    """The start of a transaction."""

    transaction: Transaction


class Change(NamedTuple):
    """An insert, an update or a delete."""

    table: Place
    operation: Operation
    before: Mapping[str, Value] | None
    after: Mapping[str, Value] | None


@dataclass(frozen=True)
class Described:
    """The columns of a table in the rows that follow."""

    table: Place
    columns: pa.Schema


@dataclass(frozen=True)
class Truncated:
    """The removal of all rows, or of those of partitions (`is_part`)."""

    table: Place
    is_part: bool


@dataclass(frozen=True)
class Reached:
    """A position between transactions, after all messages before."""

    position: int
    place: LogPlace


Message = Begin | Change | Described | Truncated | Reached


@dataclass
class LoggedTable:
    """A table of the log, whose changes are read from the position `first`.

    `catalog` returns the columns of the table now, and `known` has the columns of before.
    """

    first: int
    catalog: Callable[[], pa.Schema]
    known: pa.Schema
    described: list[dict[str, Any]] = field(default_factory=list)
    declared: Mapping[str, str] = field(default_factory=dict)


@dataclass
class EventParser:
    """The meaning of the events of a log for tables.

    `file` is the file that is read, and `gtids` has the transactions that were read.
    """

    tables: Mapping[Place, LoggedTable]
    charsets: Mapping[int, str]
    file: LogFile
    gtids: Gtids | None = None
    ignores_case: bool = False
    """Whether statements may have names of tables in another case."""
    _transaction: Transaction | None = None
    _begun: bool = False
    _changed: Place | None = None
    """A table with changes in the transaction."""
    _rows_of: dict[int, tuple[Place, list[Column]]] = field(default_factory=dict)

    def parse(self, event: Any, offset: int) -> Iterator[Message]:
        """Yields the messages of an event, which ends at an offset of the file.

        Raises Permanent for an event whose changes cannot be known.
        """
        kind = type(event).__name__
        if kind == "RotateEvent":
            if event.next_binlog != self.file.name:
                self.file = LogFile(event.next_binlog, shift=self.file.shift)
            return
        if kind == "FormatDescriptionEvent":
            self._open(event)
        elif kind in ("MariadbGtidEvent", "GtidEvent"):
            yield self._begin(event, offset, event.gtid)
            self._begun = kind == "MariadbGtidEvent" and not event.flags & _STANDALONE
        elif kind == "XidEvent":
            self._end()
        elif kind == "XAPrepareEvent":
            if not event.one_phase:
                self._check_rows(Effect.XA, offset)
            self._end()
        elif kind == "QueryEvent":
            yield from self._statement(event, offset)
        elif kind == "TableMapEvent":
            yield from self._describe(event, offset)
        elif kind in ("WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent"):
            yield from self._rows(event, kind)
        else:
            self._check(event.event_type, offset)
            if event.event_type in (_ANONYMOUS, _TAGGED):
                self.gtids = None
                return
        if self._transaction is None and self.file.created:
            yield Reached(self.file.at(offset), LogPlace(self.file, self.gtids))

    def _open(self, event: Any) -> None:
        """Checks that a file of the log is the one that was read before."""
        server, created = event.packet.server_id, event.timestamp
        found = LogFile(self.file.name, server, created, self.file.shift)
        if self.file.is_other(found):
            raise LostChanges(
                f"the file {found.name} of the binary log is not the one that was read before: "
                "changes since the last run are lost",
                hint="The log was reset, or url is another server without the GTIDs of the state.",
            )
        self.file = found
        self._rows_of.clear()

    def _begin(self, event: Any, offset: int, id_: str | None) -> Begin:
        start = offset - event.packet.event_size
        time = dt.datetime.fromtimestamp(event.timestamp, dt.UTC)
        text = self.file.text(start)
        self._transaction = Transaction(self.file.at(start), text, id_, time)
        self._begun, self._changed = False, None
        return Begin(self._transaction)

    def _end(self) -> None:
        if self._transaction is not None and self.gtids is not None:
            id_ = self._transaction.id
            self.gtids = None if id_ is None else self.gtids.after(str(id_))
        self._transaction, self._begun = None, False

    def _statement(self, event: Any, offset: int) -> Iterator[Message]:
        database = event.schema.decode(errors="replace")
        effects = {
            name: effect_of(event.query, database, name, ignores_case=self.ignores_case)
            for name in self.tables
        }
        position = self.file.at(offset)
        for name, effect in effects.items():
            is_change = effect in (Effect.DROP, Effect.CHANGE, Effect.REPLACE)
            if is_change and position > self.tables[name].first:
                raise self._unknown(name, effect, offset)
        truncated = [
            Truncated(name, effect is Effect.TRUNCATE_PART)
            for name, effect in effects.items()
            if effect in (Effect.TRUNCATE, Effect.TRUNCATE_PART)
        ]
        effect = next(iter(effects.values()))
        if effect is Effect.XA and not self._begun:
            if self._transaction is None:
                yield self._begin(event, offset, None)
            self._begun = "START" in event.query.upper()[:12]
        elif effect is Effect.BEGIN:
            if self._transaction is None:
                yield self._begin(event, offset, None)
            self._begun = True
        elif effect is Effect.ROLLBACK:
            self._check_rows(effect, offset)
            self._end()
        elif truncated:
            if self._transaction is None:
                yield self._begin(event, offset, None)
            yield from truncated
        if effect is Effect.END or not self._begun:
            self._end()

    def _check_rows(self, effect: Effect, offset: int) -> None:
        """Raises Permanent if rows of a table have come whose transaction may not commit."""
        if self._changed is not None:
            raise self._unknown(self._changed, effect, offset)

    def _unknown(self, table: Place, effect: Effect, offset: int) -> Permanent:
        return unknown_changes(".".join(table), effect, self.file.text(offset))

    def _describe(self, event: Any, offset: int) -> Iterator[Described]:
        """Yields the columns of the rows that follow if they are not those of before."""
        name = (event.schema, event.table)
        table = self.tables.get(name)
        if table is None:
            return
        described = [column.data for column in event.columns]
        catalog = table.catalog() if described != table.described else None
        if catalog is not None:
            table.declared = {each.name: declared_type(each) for each in catalog}
        columns = columns_of(event, self.charsets, table.declared)
        if columns is None:
            raise Permanent(
                f"the binary log has no names of columns at {self.file.text(offset)}",
                code="binary-log",
                hint="Run SET GLOBAL binlog_row_metadata = 'FULL', and remove the state of the "
                "pipeline to read the table again from a snapshot.",
            )
        self._rows_of[event.table_id] = name, columns
        if catalog is not None:
            declared = [(column.name, column.declared) for column in columns]
            table.known = columns_in_log(declared, (catalog, table.known))
            table.described = described
            yield Described(name, table.known)

    def _rows(self, event: Any, kind: str) -> Iterator[Message]:
        if event.table_id not in self._rows_of:
            return
        table, columns = self._rows_of[event.table_id]
        packet = event.packet
        image = Image(packet.read(event.event_size - packet.read_bytes))
        first = event.columns_present_bitmap
        while not image.is_read:
            self._changed = table
            row = read_row(image, columns, first)
            if kind == "WriteRowsEvent":
                yield Change(table, Operation.INSERT, None, row)
            elif kind == "DeleteRowsEvent":
                yield Change(table, Operation.DELETE, row, None)
            else:
                after = read_row(image, columns, event.columns_present_bitmap2)
                yield Change(table, Operation.UPDATE, row, _with_unchanged(row, after))

    def _check(self, type_: int, offset: int) -> None:
        """Raises Permanent for an event with changes that cannot be read."""
        at = f"at {self.file.text(offset)}"
        if type_ == _INCIDENT:
            loss = LostChanges(f"the server has lost changes {at} (an incident of the binary log)")
            loss.end = (self.file.at(offset), str(LogPlace(self.file, self.gtids)))
            raise loss
        if type_ in _COMPRESSED or type_ == _PARTIAL:
            raise Permanent(
                f"the binary log has compressed or partial rows {at}", code="binary-log",
                hint="Run SET GLOBAL log_bin_compress = OFF (MariaDB), or SET GLOBAL "
                "binlog_transaction_compression = OFF and binlog_row_value_options = '' (MySQL), "
                "and remove the state of the pipeline.",
            )  # fmt: skip


def _with_unchanged(before: Mapping[str, Value], after: Mapping[str, Value]) -> Mapping[str, Value]:
    """Returns the row after an update with the unchanged values that only the row before has."""
    if not has_unsent(after):
        return after
    return {
        name: before.get(name, value) if isinstance(value, Unsent) else value
        for name, value in after.items()
    }
