"""Truncations of tables in the journal, with a log and chunks in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.mysql import MysqlSource
from penstock.connectors.postgres import PostgresSource
from penstock.core.errors import Permanent, StateError
from penstock.journal import Bounds, Journal, JournalReader, Message
from penstock.sdk import Context, Read
from penstock.sdk.database.changes import (
    Chunk,
    Confirmed,
    Key,
    Progress,
    Row,
    TableChangesSource,
    TableReceiver,
    Transaction,
    TruncationWriter,
)
from penstock.sdk.database.changes.truncations import OnTruncate, read_truncations
from penstock.sdk.operations import Operation, add_operation

TRUNCATE = "truncate"
LOG: list[list[str]] = [["a", "b"], ["c", TRUNCATE, "d"], [TRUNCATE], [TRUNCATE], ["a", "e"]]
"""Transactions with the keys that they insert, or truncations."""
TRUNCATES = [False, False, False, True, False, True, True, False, False]
"""Whether each record is a truncation."""


class PartOfTable(Chunk):
    def contains(self, transaction: Transaction) -> bool:
        return transaction.position < self.position


class Table(TableReceiver):
    """A table with one chunk of rows."""

    chunk = PartOfTable([], True, 0, "none", None)

    def read_chunk(self, after: Key | None) -> Chunk:
        return self.chunk

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        return {}

    async def receive(self, log: Sequence[Sequence[str]], first: int = 1) -> None:
        """Receives transactions, whose positions begin with `first`."""
        for position, changes in enumerate(log, first):
            transaction = Transaction(position, f"at {position}", f"t{position}", None)
            self.begin(transaction)
            for change in changes:
                if change == TRUNCATE:
                    await self.truncate(transaction)
                else:
                    await self.change(transaction, Operation.INSERT, None, {"k": change})
        await self.flush()


def source(
    directory: Path, type_: Any = MysqlSource, url: str = "mysql://host/db", **options: Any
) -> TableChangesSource[Any]:
    given = {"url": url, "table": "t", "changes": True, "on_truncate": "apply"}
    config = type_.config_type.model_validate({**given, **options})
    made = type_.create(config, Context(state=directory))
    assert isinstance(made, TableChangesSource)
    made.columns = add_operation(pa.schema([("k", pa.string())]), made.operation_column)
    return made


def table(of: TableChangesSource[Any], journal: Journal) -> Table:
    progress = Progress.read(JournalReader(of.directory)) or Progress()
    confirmed, truncations = Confirmed(of.directory), of.truncation_writer()
    return Table(
        "t", ("k",), journal, progress, confirmed, 1 << 20, truncations=truncations
    )  # fmt: skip


def journal_columns(directory: Path) -> pa.Schema:
    with source(directory).journal() as journal:
        return journal._schema


def receive(of: TableChangesSource[Any], log: Sequence[Sequence[str]]) -> None:
    with of.journal() as journal:
        asyncio.run(table(of, journal).receive(log))


def batches(of: TableChangesSource[Any]) -> list[tuple[bool, list[str]]]:
    """Reads the journal by batches: whether a batch begins with a truncation, and its keys."""
    start, found = of.initial_offset(), []
    while (end := of.limit_batch(start, of.latest_offset(start))) != start:
        keys = [
            key
            for part in of.partitions(start, end)
            for rows in of.read(part, Read())
            for key in rows.column("k").to_pylist()
        ]
        found.append((of.begins_truncated(start, end), keys))
        start = end
    return found


def test_a_batch_ends_before_each_truncation(tmp_path: Path) -> None:
    receive(source(tmp_path), LOG)
    truncated = [(True, ["d"]), (True, []), (True, ["a", "e"])]
    assert batches(source(tmp_path)) == [(False, ["a", "b", "c"]), *truncated]
    assert batches(source(tmp_path, max_records=2)) == [
        (False, ["a", "b"]), (False, ["c"]), (True, ["d"]), (True, []), (True, ["a"]),
        (False, ["e"]),
    ]  # fmt: skip
    assert [truncates for truncates, _ in batches(source(tmp_path, max_records=1))] == TRUNCATES


def test_a_truncation_is_appended_with_the_rows_after_it(tmp_path: Path) -> None:
    of = source(tmp_path)

    async def run(journal: Journal) -> None:
        made, transaction = table(of, journal), Transaction(1, "at 1", "t1", None)
        made.begin(transaction)
        await made.change(transaction, Operation.INSERT, None, {"k": "a"})
        await made.truncate(transaction)
        assert journal.end == 1
        await made.change(transaction, Operation.INSERT, None, {"k": "b"})
        await made.flush()

    with of.journal() as journal:
        asyncio.run(run(journal))
    assert batches(of) == [(False, ["a"]), (True, ["b"])]


@pytest.mark.parametrize("size", [None, 1, 2, 3])
def test_rows_before_updates(tmp_path: Path, size: int | None) -> None:
    """A batch ends neither within an update nor after the truncation that follows it."""
    options = {"url": "postgresql://host/db", "before_updates": True, "max_records": size}
    of = source(tmp_path, PostgresSource, **options)

    async def run(journal: Journal) -> None:
        made, transaction = table(of, journal), Transaction(1, "at 1", 1, None)
        made.begin(transaction)
        for n, key in enumerate("abc"):
            await made.add_part(transaction, 3 * n + 1, Operation.UPDATE_BEFORE, {"k": key}, None)
            await made.add_part(transaction, 3 * n + 2, Operation.UPDATE, {"k": key}, None)
            made._number = 3 * n + 2
            await made.truncate(transaction)
        await made.flush()

    with of.journal() as journal:
        asyncio.run(run(journal))
    found = batches(of)
    assert [key for _, keys in found for key in keys] == [*"aabbcc"]
    assert all(len(keys) % 2 == 0 for _, keys in found)
    assert [truncates for truncates, keys in found if truncates or not keys] == [True] * 3


@pytest.mark.parametrize("count", range(1, 9))
def test_a_truncation_is_received_once(tmp_path: Path, count: int) -> None:
    """A receiver that ends after any record continues with the same positions."""
    changes = [(n, change) for n, each in enumerate(LOG) for change in each][:count]
    receive(source(tmp_path), [[c for at, c in changes if at == n] for n in range(len(LOG))])
    receive(source(tmp_path), LOG)
    assert read_truncations(tmp_path / "journal") == [3, 5, 6]
    assert batches(source(tmp_path))[-3:] == [(True, ["d"]), (True, []), (True, ["a", "e"])]
    assert JournalReader(tmp_path / "journal").end() == 9


@pytest.mark.parametrize(("position", "keys"), [(1, ["b"]), (2, ["b", "x", "y"])])
def test_a_truncation_removes_the_rows_of_a_chunk(
    tmp_path: Path, position: int, keys: list[str]
) -> None:
    """They remain if the chunk was read after the truncation, which is at 1."""
    of = source(tmp_path)

    async def run(journal: Journal) -> None:
        made = table(of, journal)
        rows: list[Row] = [{"k": key} for key in "xy"]
        made.chunk = PartOfTable(rows, True, position, "at", None)
        made.begin_chunk()
        await made.receive([["a", TRUNCATE], ["b"]])
        while made.is_reading:
            await asyncio.sleep(0)
            await made.finish_chunk(2)
        assert made.is_complete

    with of.journal() as journal:
        asyncio.run(run(journal))
    assert batches(of) == [(False, ["a"]), (True, keys)]


def test_a_truncation_in_the_journal_removes_the_rows_of_a_chunk(tmp_path: Path) -> None:
    """The chunk of another run is read while the log has the truncation again."""
    of = source(tmp_path)
    receive(of, [["a", TRUNCATE]])

    async def run(journal: Journal) -> None:
        made = table(of, journal)
        made.chunk = PartOfTable([{"k": "x"}], True, 1, "at", None)
        made.begin_chunk()
        await made.receive([["a", TRUNCATE], ["b"]])
        while made.is_reading:
            await asyncio.sleep(0)
            await made.finish_chunk(2)

    with of.journal() as journal:
        asyncio.run(run(journal))
    assert batches(of) == [(False, ["a"]), (True, ["b"])]


def test_records_that_a_power_failure_has_lost(tmp_path: Path) -> None:
    """A row at the position of a lost truncation is no truncation."""
    of = source(tmp_path)
    receive(of, [["a"]])
    truncations = TruncationWriter(of.directory, "apply")
    truncations.add(1)
    receive(of, [["a"], ["b"], [TRUNCATE]])
    assert read_truncations(of.directory) == [2]
    assert batches(of) == [(False, ["a", "b"]), (True, [])]


def test_a_position_that_was_lost(tmp_path: Path) -> None:
    """As in a backup whose files are of several times."""
    of = source(tmp_path)
    receive(of, LOG)
    (of.directory / "truncations").unlink()
    with pytest.raises(StateError, match="truncation at record 6, where no batch begins"):
        batches(of)
    assert [truncates for truncates, _ in batches(source(tmp_path, max_records=1))] == TRUNCATES


def test_a_position_that_was_lost_at_the_start_of_a_segment(tmp_path: Path) -> None:
    of, columns = source(tmp_path), journal_columns(tmp_path / "columns")
    with Journal(of.directory, columns, Bounds(segment=1)) as journal:
        asyncio.run(table(of, journal).receive(LOG))
    (of.directory / "truncations").unlink()
    with pytest.raises(StateError, match="where no batch begins"):
        batches(of)


def test_options_that_differ_from_those_of_the_journal(tmp_path: Path) -> None:
    """A truncation in the journal that was not applied is an error, or skipped."""
    receive(source(tmp_path), LOG)
    with pytest.raises(Permanent, match='the table "t" was truncated at record 3;') as caught:
        batches(source(tmp_path, on_truncate="fail"))
    assert caught.value.code == "truncated"
    skipped = batches(source(tmp_path, on_truncate="ignore"))
    assert skipped == [(False, keys) for keys in (["a", "b", "c"], ["d"], [], ["a", "e"])]


def test_positions_of_records_that_are_not_durable_yet(tmp_path: Path) -> None:
    of, columns = source(tmp_path), journal_columns(tmp_path / "columns")
    with Journal(of.directory, columns, Bounds(flush=3600.0)) as journal:
        asyncio.run(table(of, journal).receive(LOG))
        assert journal.end < journal.position
    assert read_truncations(of.directory) == [3, 5, 6]


def test_positions_of_removed_records_are_removed(tmp_path: Path) -> None:
    of = source(tmp_path)
    columns, one_record = journal_columns(tmp_path / "columns"), Bounds(segment=1)
    with Journal(of.directory, columns, one_record) as journal:
        asyncio.run(table(of, journal).receive(LOG))
        Confirmed(of.directory).reset(1, "log", records=6)
        of.commit({"position": 6})
        asyncio.run(table(of, journal).receive([[TRUNCATE]], first=9))
    assert read_truncations(of.directory) == [6, 9]
    assert batches(of) == [(True, ["a", "e"]), (True, [])]


@pytest.mark.parametrize(
    ("action", "is_part", "hint"),
    [
        ("fail", False, "Set on_truncate: apply to remove the rows of the targets, or on_truncate"),
        ("fail", True, "Set on_truncate: ignore"),
        ("apply", True, "Set on_truncate: ignore"),
    ],
)
def test_truncations_that_are_errors(
    tmp_path: Path, action: OnTruncate, is_part: bool, hint: str
) -> None:
    of = source(tmp_path, on_truncate=action)

    async def run(journal: Journal) -> None:
        made, transaction = table(of, journal), Transaction(1, "at 1", "t1", None)
        made.begin(transaction)
        await made.truncate(transaction, is_part=is_part)

    with of.journal() as journal, pytest.raises(Permanent, match="was truncated at at 1") as caught:
        asyncio.run(run(journal))
    assert caught.value.code == "truncated" and str(caught.value.hint).startswith(hint)
    assert ("a partition of" in caught.value.message) is is_part
    ignored = source(tmp_path / "ignored", on_truncate="ignore")
    receive(ignored, LOG)
    assert batches(ignored) == [(False, ["a", "b", "c", "d", "a", "e"])]


def test_other_payloads_are_no_truncations(tmp_path: Path) -> None:
    """An option that changes leaves the records of before."""
    of = source(tmp_path)
    receive(of, [[TRUNCATE], ["a"]])
    with of.journal() as journal:
        metadata = {"lsn": "", "snapshot": False, **Progress()._asdict()}
        asyncio.run(journal.append([Message(b"truncated more", metadata)]))
    read = Read()
    rows = [r for b in of.read((0, 3, 0), read) for r in b.column("k").to_pylist()]
    assert rows == ["a"] and [bad.error.code for bad in read.bad] == ["not-json"]
