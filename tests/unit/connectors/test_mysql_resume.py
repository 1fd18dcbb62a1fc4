"""The place of the log after a failover to another server of MySQL, which tests do not have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.mysql.changes.gtids import Gtids
from penstock.connectors.mysql.changes.positions import LogFile, LogPlace, first_position
from penstock.connectors.mysql.changes.resume import Stored, start_of
from penstock.journal import JournalReader
from penstock.sdk.database.changes import Confirmed, LostChanges

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
    return Stored(Confirmed(directory), JournalReader(directory), from_start=False)


def test_a_server_with_all_transactions_is_read_after_them(tmp_path: Path) -> None:
    table = stored(tmp_path, LogPlace(READ, Gtids.parse(f"{FIRST}:1-10")))
    start = start_of(server(f"{FIRST}:1-12"), [table])
    assert start.offset is None and str(start.place.gtids) == f"{FIRST}:1-10"
    assert Confirmed(tmp_path).position == first_position(start.shift) > READ.at(2**32 - 1)


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
