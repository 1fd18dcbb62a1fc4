"""The place of the log after a failover, and the transactions of the journal on another server."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.mysql.changes.gtids import Gtids
from penstock.connectors.mysql.changes.positions import LogFile, LogPlace
from penstock.connectors.mysql.changes.received import Journaled, Received
from penstock.connectors.mysql.changes.resume import Stored, start_of
from penstock.journal import Bounds, Journal, JournalReader, Message
from penstock.sdk.database.changes import Confirmed, LostChanges, Progress

FIRST = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
READ = LogFile("bin.000007", 1, 50)


def server(executed: str, id_: int = 2) -> Any:
    """Returns a connection to a server with a log and these transactions."""
    status = ("other.000002", 900, "", "", executed)
    return SimpleNamespace(
        is_mariadb=False, server_id=id_, config=SimpleNamespace(address="db:3306/shop"),
        query=lambda _: [status], rollback=lambda: None,
    )  # fmt: skip


def stored(directory: Path, place: LogPlace) -> Stored:
    Confirmed(directory).reset(place.file.at(500), str(place))
    reader = JournalReader(directory)
    progress = Progress.read(reader) or Progress()
    return Stored(Confirmed(directory), reader, progress, from_start=False)


def test_a_server_with_all_transactions_is_read_after_them(tmp_path: Path) -> None:
    table = stored(tmp_path, LogPlace(READ, Gtids.parse(f"{FIRST}:1-10")))
    start = start_of(server(f"{FIRST}:1-12"), [table])
    assert start.offset is None and str(start.place.gtids) == f"{FIRST}:1-10"
    known = LogPlace.parse(Confirmed(tmp_path).log).file
    assert known.shift == start.shift and known.at(0) > READ.at(2**32 - 1)


@pytest.mark.parametrize("executed", [f"{FIRST}:1-9", f"{FIRST}:2-12", ""])
def test_a_server_that_lacks_transactions(tmp_path: Path, executed: str) -> None:
    """MySQL sends its log without an error, also if transactions were lost in the failover."""
    table = stored(tmp_path, LogPlace(READ, Gtids.parse(f"{FIRST}:1-10")))
    before = Confirmed(tmp_path).log
    with pytest.raises(LostChanges, match="does not have all transactions"):
        start_of(server(executed), [table])
    assert Confirmed(tmp_path).log == before


def test_another_server_without_gtids(tmp_path: Path) -> None:
    """The time of a file is compared where it is known; it is not before the first event."""
    table = stored(tmp_path, LogPlace(LogFile("bin.000007", 1)))
    with pytest.raises(LostChanges, match="is not the server that was read before"):
        start_of(server(""), [table])
    assert start_of(server("", id_=1), [table]).offset == 500
    table = stored(tmp_path, LogPlace(READ))
    assert start_of(server(""), [table]).place.file == READ


def place_of_received(*journal: str, start: str, gtids: str, is_whole: bool = True) -> Received:
    """Returns the transactions of a place and of a journal, the last with one of its changes."""
    journaled = Journaled(journal, 1, is_whole)
    return Received(Gtids.parse(gtids), Gtids.parse(start), journaled)


def read_of(received: Received, *ids: str) -> list[str]:
    """Returns the transactions of a log of which changes are read."""
    return [id_ for id_ in ids if not received.begin(id_)]


def test_transactions_of_a_journal_out_of_order() -> None:
    """The log of a domain to which two servers have written has greater numbers first."""
    received = place_of_received("0-1-100", "0-2-97", start="0-1-99", gtids="0-1-99")
    log = ("0-1-100", "0-2-96", "1-2-97", "0-2-97", "0-2-98")
    assert read_of(received, *log[:3]) == ["0-2-96", "1-2-97"]
    assert not received.is_over(None)
    assert read_of(received, *log[3:]) == ["0-2-97", "0-2-98"] and received.is_over(None)
    assert received.has("0-2-97", 1) and not received.has("0-2-97", 2)


def test_a_place_after_the_start_of_the_log() -> None:
    """The log is read for another table, too, whose place is earlier and has a greater number."""
    received = place_of_received(start="0-1-100,1-1-1", gtids="0-2-97,1-1-1,2-1-5")
    assert read_of(received, "0-2-96", "1-1-2", "2-1-5", "0-2-97") == ["1-1-2"]
    assert received.is_over(None) and read_of(received, "0-2-98", "2-1-6") == ["0-2-98", "2-1-6"]


def test_a_journal_whose_first_records_were_removed() -> None:
    received = place_of_received("0-1-103", start="0-1-99", gtids="0-1-99", is_whole=False)
    assert read_of(received, "0-1-100", "1-1-7", "0-1-102", "0-1-103") == ["1-1-7", "0-1-103"]
    for log in (("0-2-104",), ("0-1-102", "0-2-101")):
        received = place_of_received("0-1-103", start="0-1-99", gtids="0-1-99", is_whole=False)
        with pytest.raises(LostChanges, match="their numbers in the domain 0 do not grow"):
            read_of(received, *log)


def test_a_journal_without_records_before_the_place(tmp_path: Path) -> None:
    """All transactions after the place are known, since none of their records was removed."""
    columns = pa.schema(
        [("payload", pa.binary()), ("commit", pa.int64()), ("transaction", pa.string())]
    )
    bounds = Bounds(size=1 << 20, segment=1, flush="each")
    with Journal(tmp_path, columns, bounds) as journal:
        for commit in (10, 20, 30):
            metadata = {"commit": commit, "transaction": f"{FIRST}:{commit}"}
            asyncio.run(journal.append([Message(b"row", metadata)]))
    reader = JournalReader(tmp_path)
    reader.remove_before(1)
    read = partial(Journaled.read, reader, 15, 1)
    assert read(records=1) == Journaled((f"{FIRST}:20", f"{FIRST}:30"), 1, is_whole=True)
    assert not read(records=0).is_whole


def test_transactions_of_a_replica_that_commits_in_another_order() -> None:
    of = partial("{}:{}".format, FIRST)
    received = place_of_received(of(12), start=of("1-8"), gtids=of("1-9"))
    assert read_of(received, of(9), of(12), of(10), of(11)) == [of(12), of(10), of(11)]
    assert not received.is_over(Gtids.parse(of("1-8:10-12")))
    assert received.is_over(Gtids.parse(of("1-12")))
