"""The place of the log from which a run reads: the stored one, on this or on another server.

On the server of the stored place this is its file and position. On another server, such as a
replica that has become the primary, it is found by GTIDs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from penstock.connectors.mysql.changes.gtids import Gtids, parts_of
from penstock.connectors.mysql.changes.positions import (
    LogFile,
    LogPlace,
    file_number,
    file_offset,
)
from penstock.connectors.mysql.changes.received import Journaled, Received
from penstock.connectors.mysql.changes.snapshot import log_end, log_sizes, log_start, log_status
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.core.errors import Permanent
from penstock.journal import JournalReader
from penstock.sdk.database.changes import Confirmed, LostChanges, Progress

_GTIDS_AT = "SELECT BINLOG_GTID_POS(\0, \0)"
_LOGGED = "SELECT @@gtid_binlog_state, @@gtid_slave_pos"


@dataclass(frozen=True)
class Stored:
    """The stored place of a table, its journal and its progress. With `is_new` nothing was read.

    With `from_start` a new table is read from the start of the log.
    """

    confirmed: Confirmed
    reader: JournalReader
    progress: Progress
    from_start: bool

    @property
    def is_new(self) -> bool:
        return not self.confirmed.position

    @property
    def place(self) -> LogPlace:
        return LogPlace.parse(self.confirmed.log)

    @cached_property
    def journaled(self) -> Journaled:
        """The transactions of the journal after the place."""
        stored = self.confirmed
        return Journaled.read(self.reader, stored.position, self.progress.number, stored.records)


@dataclass(frozen=True)
class Start:
    """The place of the log after which it is read.

    It is at an offset of its file. Without an offset the server finds it by its GTIDs.
    """

    place: LogPlace
    offset: int | None

    @property
    def shift(self) -> int:
        """The shift of the files of the log."""
        return self.place.file.shift

    def received(self, table: Stored) -> Received | None:
        """Returns the transactions that a table has from other servers; None without any."""
        place = table.place
        if self.offset is not None or place.file.name or place.gtids is None:
            return None
        assert self.place.gtids is not None
        return Received(place.gtids, self.place.gtids, table.journaled)


def start_of(connection: MysqlConnection, tables: Sequence[Stored]) -> Start:
    """Returns the place after which the log is read for tables, and stores it for new ones.

    Raises LostChanges, Transient or Permanent.
    """
    old = [table for table in tables if not table.is_new]
    places = [_known(connection, table) for table in old]
    shifts = {place.file.shift for place in places} or {0}
    sets = [place.gtids for place in places if place.gtids is not None and str(place.gtids)]
    is_moved = len(shifts) > 1 or any(_is_elsewhere(connection, place) for place in places)
    if is_moved and len(sets) == len(places):
        _check_transactions(connection, old, sets)
        numbers = [max(table.confirmed.position, table.progress.commit) for table in old]
        shift = file_number(max(numbers)) + 1
        for table, gtids in zip(old, sets, strict=True):
            # The place is replaced after the transactions of the journal.
            place = LogPlace(LogFile("", shift=shift), gtids)
            stored = table.confirmed
            stored.reset(stored.position, str(place), stored.records)
        _begin(connection, tables, shift)
        _, least = min(zip(old, sets, strict=True), key=lambda each: each[0].confirmed.position)
        start = least if connection.is_mariadb else Gtids.common(sets)
        return Start(LogPlace(LogFile("", shift=shift), start), None)
    if len(shifts) > 1:
        raise Permanent(
            "the tables of one server_id were read from different servers, and their GTIDs are not "
            "known",
            code="binary-log", hint="Set another server_id for one of them.",
        )  # fmt: skip
    if any(_is_elsewhere(connection, place) and not place.file.created for place in places):
        raise LostChanges(
            f"{connection.config.address} is not the server that was read before, and the state "
            "has no GTIDs: changes since the last run are lost"
        )
    _begin(connection, tables, *shifts)
    first = min(tables, key=lambda table: table.confirmed.position)
    return Start(_known(connection, first), file_offset(first.confirmed.position))


def log_after(connection: MysqlConnection, confirmed: Confirmed) -> int | None:
    """Returns the bytes of the log after a stored place; None if this server does not have it."""
    if not confirmed.position:
        return None
    place, sizes = LogPlace.parse(confirmed.log), log_sizes(connection)
    if place.file.name not in sizes:
        return None
    names = [*sizes]
    later = names[names.index(place.file.name) :]
    return sum(sizes[name] for name in later) - file_offset(confirmed.position)


def _begin(connection: MysqlConnection, tables: Sequence[Stored], shift: int) -> None:
    """Stores the place of tables that were not read before."""
    for table in tables:
        if table.is_new:
            file, offset = log_start(connection) if table.from_start else log_end(connection)
            server = connection.server_id
            place = LogPlace(LogFile(file.name, server, shift=shift))
            place = _with_gtids(connection, place, offset)
            table.confirmed.raise_to(place.file.at(offset), str(place))


def _known(connection: MysqlConnection, table: Stored) -> LogPlace:
    """Returns the stored place of a table, with its GTIDs if this server has them."""
    place = table.place
    if _is_elsewhere(connection, place):
        return place
    return _with_gtids(connection, place, file_offset(table.confirmed.position))


def _check_transactions(
    connection: MysqlConnection, tables: Sequence[Stored], sets: Sequence[Gtids]
) -> None:
    """Raises LostChanges if a server lacks transactions that tables have.

    It sends its log also after transactions that it has not: MySQL after those of other servers,
    and MariaDB after those of a domain of which it has none.
    """
    includes = _transactions_of(connection)
    if includes is None:
        return
    for table, gtids in zip(tables, sets, strict=True):
        if not includes(gtids, table.journaled.ids):
            raise LostChanges(
                f"{connection.config.address} does not have all transactions that were read from "
                "another server: changes are lost",
                hint="If the server still replicates them, run the pipeline again afterwards.",
            )


def _transactions_of(
    connection: MysqlConnection,
) -> Callable[[Gtids, Sequence[str]], bool] | None:
    """Returns whether a server has the transactions of a place and others, if it returns its own.

    MariaDB has the last number of each server in a domain.
    """
    if not connection.is_mariadb:
        with suppress(ValueError):
            executed = Gtids.parse(_executed(connection, None) or "")
            return lambda gtids, ids: executed.has_all(gtids) and all(map(executed.includes, ids))
        return None
    ((state, replicated),) = connection.query(_LOGGED)
    connection.rollback()
    logged = {parts_of(each)[:2]: parts_of(each)[2] for each in state.split(",") if each}

    def has(gtid: str) -> bool:
        name, server, number = parts_of(gtid)
        return logged.get((name, server), -1) >= number or gtid in replicated.split(",")

    return lambda gtids, ids: all(map(has, (*gtids.ends.values(), *ids)))


def _is_elsewhere(connection: MysqlConnection, place: LogPlace) -> bool:
    """Returns whether a place is in the log of another server."""
    return not place.file.name or place.file.server not in (0, connection.server_id)


def _with_gtids(connection: MysqlConnection, place: LogPlace, offset: int) -> LogPlace:
    """Returns a place of this server with its GTIDs, if the server returns them."""
    if place.gtids is not None:
        return place
    text = None
    if connection.is_mariadb:
        # The file may be gone: the stream then fails with the reason.
        with suppress(Permanent):
            ((text,),) = connection.query(_GTIDS_AT, (place.file.name, offset))
    else:
        text = _executed(connection, (place.file.name, offset))
    connection.rollback()
    if text is None:
        return place
    with suppress(ValueError):
        return LogPlace(place.file, Gtids.parse(text))
    return place


def _executed(connection: MysqlConnection, at: tuple[str, int] | None) -> str | None:
    """Returns the transactions of a server of MySQL; None if its log does not end at a place."""
    name, end, _, _, *gtids = log_status(connection)
    return gtids[0] if gtids and at in (None, (name, int(end))) else None
