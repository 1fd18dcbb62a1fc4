"""The receiver of changes of tables, with a log and chunks in memory."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import DecodeError, PenstockError, Permanent, StateError
from penstock.journal import Bounds, Journal, JournalReader, Message
from penstock.sdk.database.changes import (
    ChangesReceiver,
    Chunk,
    Confirmed,
    Key,
    Progress,
    Row,
    SchemaWriter,
    TableReceiver,
    Transaction,
    Unsent,
    Value,
    chunks,
    metadata_of,
    receiver,
)
from penstock.sdk.database.changes import table as changed_table
from penstock.sdk.database.changes.payloads import MANY, payloads_of, texts_of_payloads
from penstock.sdk.database.changes.progress import PROGRESS
from penstock.sdk.database.changes.rows import (
    change_payload,
    changes_of_payloads,
    key_of_text,
    key_text,
)
from penstock.sdk.database.changes.schemas import read_schemas
from penstock.sdk.database.changes.table_source import texts_one_by_one
from penstock.sdk.operations import Operation

INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE
Change = tuple[Operation, dict[str, Value] | None, dict[str, Value] | None]
COLUMNS = pa.schema(
    [("payload", pa.binary()), *metadata_of(pa.string()), *PROGRESS, ("received", pa.int64())]
)


@dataclass(frozen=True)
class PartOfTable(Chunk):
    end: int = 0

    def contains(self, transaction: Transaction) -> bool:
        return transaction.position < self.end


class Table(TableReceiver):
    """A table with scripted chunks."""

    def __init__(self, directory: Path, journal: Journal, chunks: Sequence[Chunk]) -> None:
        progress = Progress.read(JournalReader(directory)) or Progress()
        columns = pa.schema([("k", pa.string()), ("v", pa.string())])
        schemas = SchemaWriter(directory, "t", columns, ("_op",))
        confirmed = Confirmed(directory)
        super().__init__("t", ("k",), journal, progress, confirmed, 1 << 20, schemas)
        self.chunks = list(chunks)
        self.asked: list[Key | None] = []

    def read_chunk(self, after: Key | None) -> Chunk:
        self.asked.append(after)
        return self.chunks.pop(0) if self.chunks else PartOfTable([], True, 0, "none", None)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        return dict.fromkeys(names, f"current {key}")


class Receiver(ChangesReceiver):
    """Receives scripted transactions, each by a call of `receive`."""

    def __init__(self, tables: Sequence[Table], log: Sequence[tuple[int, list[Change]]]) -> None:
        super().__init__(tables)
        self.own, self.log = tables, list(log)

    async def start(self) -> int:
        return 0

    async def receive(self) -> None:
        chunks = [table._chunk for table in self.own]
        while any(chunk is not None and not chunk.done() for chunk in chunks):
            await asyncio.sleep(0)
        if not self.log:
            if all(table.is_complete or not table.chunks for table in self.own):
                raise Permanent("the end", code="rejected")
            return
        position, changes = self.log.pop(0)
        if changes:
            self.begin(Transaction(position, f"at {position}", f"t{position}", None))
            for change in changes:
                names = change[2] or change[1] or {}
                assert self.transaction is not None
                for table in self.own:
                    table.described = pa.schema([(name, pa.string()) for name in names])
                    await table.change(self.transaction, *change)
        self.transaction = None
        self.position = position + 1


@pytest.fixture
def receive(tmp_path: Path) -> Callable[..., list[Any]]:
    """Receives until the end of a log. Returns the new records: operation, row, lsn."""
    read = 0

    def receive(chunks: Sequence[Chunk], log: Sequence[tuple[int, list[Change]]]) -> list[Any]:
        nonlocal read
        bounds = Bounds(size=1 << 20, segment=1 << 18, flush="each", message=1 << 18)
        with Journal(tmp_path, COLUMNS, bounds) as journal:
            receiving = Receiver([Table(tmp_path, journal, chunks)], log)
            with pytest.raises(Permanent, match="the end"):
                asyncio.run(receiving.run())
        reader = JournalReader(tmp_path)
        records = []
        for _, batch in reader.read(read, reader.end()):
            for row in batch.to_pylist():
                change = json.loads(row["payload"])
                records.append((change["op"], change["row"], row["lsn"], row["snapshot"]))
        read = reader.end()
        return records

    return receive


def test_columns_of_changes_are_the_same_payloads() -> None:
    texts = [
        'née "x" \\ \n \x01 \u2028 😀',
        "",
        None,
        '{"bytes": 0}',
        "2020-01-01T00:00:00Z",
        "1e400",
    ]
    rows = pa.record_batch({'a "b"\\': texts, "k": texts[::-1], "n": pa.nulls(6, pa.string())})
    operations = pa.array(["i", "u", "d"] * 2)
    payloads = payloads_of(operations, rows).to_pylist()
    expected = zip(operations.to_pylist(), rows.to_pylist(), strict=True)
    assert payloads == [change_payload(Operation(each), row) for each, row in expected]
    assert texts_of_payloads(payloads, rows.schema.names) == (operations, rows)
    found = texts_of_payloads(payloads, ["k", "added"])
    assert found is not None and found[1].to_pydict() == {"k": texts[::-1], "added": [None] * 6}


@pytest.mark.parametrize(
    "payload", [b"", b"x", b"1", b'{"op": "i"}', b'{"op": "i", "row": {"k": 1}}',
                b'{"op": "i", "row": {}} {"op": "i", "row": {}}'],
)  # fmt: skip
def test_payloads_that_are_no_changes(payload: bytes) -> None:
    """They are parsed one by one, which finds them."""
    valid = b'{"op": "i", "row": {"k": "1"}}'
    assert texts_of_payloads([valid, payload, valid], ["k"]) is None


def test_rows_by_columns_are_journaled_in_order(tmp_path: Path) -> None:
    """Rows before and after them are added one by one; those that the journal has are left out."""
    first, second = (Transaction(n, f"at {n}", f"t{n}", None) for n in (10, 20))
    rows = pa.record_batch({"k": ["2", "3", "4"], "v": ["b", None, "d"]})
    with Journal(tmp_path, COLUMNS, Bounds(message=1 << 10)) as journal:
        table = Table(tmp_path, journal, [])
        table.described = pa.schema([("k", pa.string()), ("v", pa.string())])

        async def add() -> None:
            await table.change(first, INSERT, None, {"k": "1", "v": "a"})
            await table.add_rows(
                [first, second, second], [2, 1, 2], pa.array(["i", "i", "d"]), rows
            )
            await table.add_part(second, 3, UPDATE, {"k": "5", "v": "e"}, None)
            large = pa.record_batch({"k": ["5", "6"], "v": ["e", "x" * 2000]})
            await table.add_rows([second] * 2, [3, 4], pa.array(["u", "u"]), large)
            await table.add_rows([second] * 2, [3, 4], pa.array(["u", "u"]), large)
            await table.flush()

        asyncio.run(add())
    ((_, batch),) = JournalReader(tmp_path).read(0, 6)
    found = batch.select(["lsn", "transaction", "commit", "number", "snapshot"]).to_pydict()
    assert [*zip(*found.values(), strict=True)] == [
        ("at 10", "t10", 10, 1, False), ("at 10", "t10", 10, 2, False),
        *(("at 20", "t20", 20, number, False) for number in (1, 2, 3, 4)),
    ]  # fmt: skip
    payloads = batch.column("payload").to_pylist()
    changes = [json.loads(payload) for payload in payloads[:-1]]
    assert [(each["op"], each["row"]["k"]) for each in changes] == [
        ("i", "1"), ("i", "2"), ("i", "3"), ("d", "4"), ("u", "5")
    ]  # fmt: skip
    assert len(payloads[-1]) == 1024, "only the head of a large row is stored"


def test_rows_by_columns_while_a_chunk_is_read(tmp_path: Path) -> None:
    """Rows of the chunk are left out if a later transaction has changed them."""
    old, new = (Transaction(n, f"at {n}", f"t{n}", None) for n in (4, 20))
    chunk = PartOfTable([{"k": key, "v": "read"} for key in "123"], True, 10, "at 10", None, 10)
    rows = pa.record_batch({"k": ["1", "2", "9"], "v": ["old", "new", "new"]})

    async def add(table: Table) -> None:
        table.begin_chunk()
        await table.add_rows([old, new, new], [1, 1, 2], pa.array(["u", "u", "d"]), rows)
        while table.is_reading:
            await asyncio.sleep(0)
            await table.finish_chunk(10)

    with Journal(tmp_path, COLUMNS) as journal:
        table = Table(tmp_path, journal, [chunk])
        table.described = rows.schema
        asyncio.run(add(table))
        ((_, batch),) = JournalReader(tmp_path).read(0, journal.end)
    values = [json.loads(payload)["row"] for payload in batch.column("payload").to_pylist()]
    assert [(row["k"], row["v"]) for row in values] == [
        ("1", "old"), ("2", "new"), ("9", "new"), ("1", "read"), ("3", "read")
    ]  # fmt: skip


@pytest.mark.parametrize("by_columns", [True, False])
def test_changed_keys_of_a_large_transaction_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_columns: bool
) -> None:
    """The log waits for the chunk once many keys have changed, and confirms meanwhile.

    The chunk contains the first change, and none of the transaction, which also changes its keys
    before and after the wait.
    """
    monkeypatch.setattr(chunks, "MAX_CHANGED_KEYS", 100)
    monkeypatch.setattr(changed_table, "_WAIT_SECONDS", 0.01)
    rows: list[Row] = [{"k": key, "v": "read"} for key in ("first", "3", "700", "same")]
    chunk = PartOfTable(rows, True, 30, "at 30", None, 10)
    old, large = (Transaction(n, f"at {n}", f"t{n}", None) for n in (5, 20))
    is_awaited, kept = threading.Event(), []

    class Slow(Table):
        def read_chunk(self, after: Key | None) -> Chunk:
            assert is_awaited.wait(60), "the log does not wait for the chunk"
            return super().read_chunk(after)

    async def add(table: Table) -> None:
        table.begin_chunk()
        await table.add_part(old, 1, UPDATE, row("first"), None)
        for first in range(0, 1000, 50):
            keys = [str(n) for n in range(first, first + 50)]
            if by_columns:
                values = pa.record_batch({"k": keys, "v": ["new"] * 50})
                numbers = [int(key) + 1 for key in keys]
                await table.add_rows([large] * 50, numbers, pa.repeat("u", 50), values)
            else:
                for key in keys:
                    await table.add_part(large, int(key) + 1, UPDATE, row(key), None)
            kept.append(len(table._changed.transactions))
        await table.finish_chunk(30)

    with Journal(tmp_path, COLUMNS) as journal:
        table = Slow(tmp_path, journal, [chunk])
        table.described = pa.schema([("k", pa.string()), ("v", pa.string())])
        table.while_waiting = is_awaited.set
        asyncio.run(add(table))
    reader = JournalReader(tmp_path)
    payloads = [p for _, each in reader.read(1001, reader.end()) for p in each[0].to_pylist()]
    assert [json.loads(payload)["row"]["k"] for payload in payloads] == ["first", "same"]
    assert max(kept) <= 100 and kept[-1] == 3, "only keys of the chunk are kept"


@pytest.mark.slow
def test_many_rows_by_columns_fit_a_small_journal(tmp_path: Path) -> None:
    """They are appended in parts. A reader removes what it has read meanwhile."""
    count, transaction = 5000, Transaction(10, "at 10", "t10", None)
    rows = pa.record_batch({"k": [str(n) for n in range(count)], "v": ["x" * 1000] * count})
    bounds, reader, found = Bounds(size=1 << 20, segment=1 << 17), JournalReader(tmp_path), 0

    async def read() -> None:
        nonlocal found
        while found < count:
            found = reader.end()
            reader.remove_before(found)
            await asyncio.sleep(0.01)

    async def add(table: Table) -> None:
        reading = asyncio.create_task(read())
        numbers, operations = [*range(1, count + 1)], pa.repeat("i", count)
        await table.add_rows([transaction] * count, numbers, operations, rows)
        await table.flush()
        await reading

    with Journal(tmp_path, COLUMNS, bounds) as journal:
        table = Table(tmp_path, journal, [])
        table.described = rows.schema
        asyncio.run(asyncio.wait_for(add(table), 60))
    assert found == count and Progress.read(reader) == Progress(10, count)


def test_payloads_have_all_values() -> None:
    rows: list[Row] = [
        {"k": "1", 'a "b"\\': 'née "x" \\ \n \x01 \u2028 😀', "n": None, "b": b"\0\xff"},
        {"k": '{"bytes": "00"}', "100 %s": None},
        {},
    ]
    payloads = [change_payload(Operation.UPDATE, each) for each in rows]
    assert texts_of_payloads(payloads, ["k"]) is None, "a value is bytes"
    for each, payload in zip(rows, payloads, strict=True):
        assert json.loads(payload)["row"].keys() == each.keys()
        assert changes_of_payloads([payload]) == (["u"], [each])
    assert changes_of_payloads(payloads) == (["u"] * 3, rows)


@pytest.mark.parametrize("content", [b"", b"{", b'{"op": "i", "row": {}},{"op": "i", "row": {}}'])
def test_a_payload_that_is_no_change(content: bytes) -> None:
    valid = change_payload(Operation.INSERT, {"k": "1"})
    for payloads in ([content], [valid, content, valid]):
        with pytest.raises(DecodeError, match="not a change"):
            changes_of_payloads(payloads)


def row(key: str, value: Value = "new") -> dict[str, Value]:
    return {"k": key, "v": value}


def test_a_newer_change_replaces_the_row_of_a_chunk(receive: Any) -> None:
    """Row 1 was changed before the read of the chunk, row 2 after it, and row 3 not at all."""
    rows: list[Row] = [{"k": k, "v": "read"} for k in "123"]
    chunk = PartOfTable(rows, True, position=30, lsn="at 30", columns=None, end=15)
    log = [(10, [(UPDATE, None, row("1"))]), (20, [(UPDATE, None, row("2"))]), (31, [])]
    found = receive([chunk], log)
    assert [(op, r["k"], r["v"], snapshot) for op, r, _, snapshot in found] == [
        ("u", "1", "new", False), ("u", "2", "new", False),
        ("i", "1", "read", True), ("i", "3", "read", True),
    ]  # fmt: skip
    assert [lsn for _, _, lsn, _ in found] == ["at 10", "at 20", "at 30", "at 30"]


def test_a_chunk_is_written_when_the_log_has_reached_it(receive: Any) -> None:
    chunk = PartOfTable(
        [{"k": "1", "v": "read"}], True, position=25, lsn="at 25", columns=None, end=25
    )
    log = [(10, [(INSERT, None, row("8"))]), (20, [(INSERT, None, row("9"))]), (30, [])]
    assert [r["k"] for _, r, _, _ in receive([chunk], log)] == ["8", "9", "1"]


def test_a_receiver_continues_after_its_last_record(receive: Any) -> None:
    """Neither changes nor chunks are written twice, also within a transaction."""
    first = PartOfTable([{"k": "1", "v": "read"}], False, 0, "at 0", None)
    changes: list[Change] = [(INSERT, None, row("5")), (INSERT, None, row("6"))]
    assert [r["k"] for _, r, _, _ in receive([first], [(10, changes[:1])])] == ["5", "1"]
    second = PartOfTable([{"k": "2", "v": "read"}], True, 0, "at 0", None)
    found = receive([second], [(10, changes), (20, [(DELETE, row("5"), None)])])
    assert [(op, r["k"]) for op, r, _, _ in found] == [("i", "6"), ("i", "2"), ("d", "5")]


def test_the_snapshot_ends_with_a_short_chunk(receive: Any) -> None:
    """It is not read again, also if the receiver starts again."""
    last = PartOfTable([{"k": "1", "v": "read"}], True, 0, "at 0", None)
    assert [r["k"] for _, r, _, _ in receive([last], [(10, [])])] == ["1"]
    assert receive([last], [(20, [])]) == []


def test_a_change_of_the_key_is_a_delete_and_an_insert(receive: Any) -> None:
    found = receive([], [(10, [(UPDATE, row("1", "old"), row("2"))])])
    assert [(op, r) for op, r, _, _ in found] == [("d", row("1", "old")), ("i", row("2"))]


def test_values_that_are_not_sent(receive: Any) -> None:
    """They are those of the row before, or the current ones."""
    unsent = Unsent.VALUE
    log: list[Any] = [
        (10, [(UPDATE, row("1", "old"), row("1", unsent)), (UPDATE, None, row("2", unsent))])
    ]
    found = receive([], log)
    assert [r["v"] for _, r, _, _ in found] == ["old", "current ('2',)"]
    empty = [(20, [(UPDATE, row("1", ""), row("1", unsent)), (DELETE, row("1", unsent), None)])]
    assert [r["v"] for _, r, _, _ in receive([], empty)] == ["", None], "a delete has its key"


def test_values_of_rows_that_were_removed_meanwhile(
    receive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not null: neither by themselves, nor beside many rows that have all values."""
    monkeypatch.setattr(Table, "read_current", lambda *_: {})
    receive([], [(10, [(UPDATE, None, row("1", Unsent.VALUE))])])
    unknown = change_payload(UPDATE, row("1", Unsent.VALUE))
    known = [change_payload(UPDATE, row(str(n), "sent")) for n in range(MANY)]
    for payloads in ([unknown], [*known, unknown], [unknown, *known]):
        assert texts_of_payloads(payloads, ["k", "v"]) is None
        with pytest.raises(DecodeError, match='the value of column "v"') as unsent:
            texts_one_by_one(payloads, ["k", "v"])
        assert unsent.value.code == "unavailable-value"
        assert len(texts_one_by_one(payloads, ["k"])[0]) == len(payloads), "v is not declared"


def test_bytes_in_keys_and_rows(receive: Any) -> None:
    key: Key = ("é", None, b"\x00\xff", "1")
    assert key_of_text(key_text(key)) == key
    ((_, found, _, _),) = receive([], [(10, [(INSERT, None, {"k": "1", "v": b"\xff"})])])
    assert found == {"k": "1", "v": {"bytes": "ff"}}


def test_a_confirmed_position_only_grows(tmp_path: Path) -> None:
    confirmed = Confirmed(tmp_path)
    assert (confirmed.position, confirmed.log) == (0, "")
    confirmed.raise_to(7, "1:2:bin.000001")
    confirmed.raise_to(5, "other")
    stored = Confirmed(tmp_path)
    assert (stored.position, stored.log, stored.records) == (7, "1:2:bin.000001", 0)
    stored.raise_to(7, "log", 3)
    stored.raise_to(7, "log", 2)
    assert Confirmed(tmp_path).records == 3
    (tmp_path / "confirmed").write_text("12")
    assert (Confirmed(tmp_path).position, Confirmed(tmp_path).log) == (12, "")


def test_a_schema_begins_before_the_first_row_that_needs_it(receive: Any, tmp_path: Path) -> None:
    """Also within a transaction, and once if a receiver reads the changes again."""
    wide = {**row("2"), "more": "x"}
    changes = [(INSERT, None, row("1")), (INSERT, None, wide), (INSERT, None, row("3"))]
    chunk = PartOfTable([], True, 0, "at 0", pa.schema([("k", pa.string())]))
    receive([chunk], [(10, changes)])
    receive([], [(10, changes), (20, [(UPDATE, None, wide)])])
    ((position, names),) = [(s.position, s.columns.names) for s in read_schemas(tmp_path)]
    assert (position, names) == (1, ["k", "v", "more"])


def test_a_schema_whose_rows_a_power_failure_has_lost(
    receive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that are received again have positions from the end of the journal."""
    monkeypatch.setattr(receiver, "_FLUSH_SECONDS", 0.0)
    lost, wide = tmp_path / "lost", {**row("2"), "more": "x"}
    with Journal(lost, COLUMNS, Bounds(flush=3600.0)) as journal:
        log = [(10, [(INSERT, None, row("1"))]), (20, [(INSERT, None, wide)])]
        with pytest.raises(Permanent, match="the end"):
            asyncio.run(Receiver([Table(lost, journal, [])], log).run())
        assert (journal.end, journal.position) == (0, 2)
        (tmp_path / "schemas").write_bytes((lost / "schemas").read_bytes())
    assert [record[1] for record in receive([], [(20, [(INSERT, None, wide)])])] == [wide]
    assert [schema.position for schema in read_schemas(tmp_path)] == [0]


def test_a_position_is_confirmed_when_all_tables_have_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal of the second table fails first, and then has the rows too."""
    monkeypatch.setattr(receiver, "_CONFIRM_SECONDS", 0.0)
    monkeypatch.setattr(receiver, "_FLUSH_SECONDS", 0.0)
    log = [(10, [(INSERT, None, row("1"))]), (20, []), (30, [])]
    directories = [tmp_path / "first", tmp_path / "second"]

    async def fail(messages: Sequence[Message]) -> None:
        raise StateError("the disk is full")

    for is_full, confirmed, rows in ((True, 0, [1, 0]), (False, 31, [1, 1])):
        with ExitStack() as stack:
            journals = [stack.enter_context(Journal(each, COLUMNS)) for each in directories]
            tables = [
                Table(directory, journal, [])
                for directory, journal in zip(directories, journals, strict=True)
            ]
            if is_full:
                monkeypatch.setattr(journals[1], "take", fail)
            with pytest.raises(PenstockError, match="full" if is_full else "the end"):
                asyncio.run(Receiver(tables, log).run())
        assert [Confirmed(each).position for each in directories] == [confirmed] * 2
        assert [JournalReader(each).end() for each in directories] == rows


def test_rows_are_passed_on_before_they_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction is received while the disk writes the one before, and confirmed after it."""
    monkeypatch.setattr(receiver, "_CONFIRM_SECONDS", 0.0)
    written, events = threading.Event(), list[tuple[int, int, int]]()
    write = os.fdatasync

    def wait_and_write(descriptor: int) -> None:
        assert written.wait(30)
        write(descriptor)

    class Log(Receiver):
        async def receive(self) -> None:
            confirmed, durable = Confirmed(tmp_path).position, self.tables[0].journal.end
            events.append((len(self.log), confirmed, durable))
            if not self.log:
                monkeypatch.setattr(receiver, "_FLUSH_SECONDS", 0.0)
                asyncio.get_running_loop().call_later(0.1, written.set)
            if self.log or confirmed == 31:
                await super().receive()

    log: list[tuple[int, list[Change]]] = [(10, [])]
    log += [(position, [(INSERT, None, row(str(position)))]) for position in (20, 30)]
    with Journal(tmp_path, COLUMNS) as journal:
        monkeypatch.setattr(os, "fdatasync", wait_and_write)
        monkeypatch.setattr(receiver, "_FLUSH_SECONDS", 3600.0)
        with pytest.raises(Permanent, match="the end"):
            asyncio.run(Log([Table(tmp_path, journal, [])], log).run())
    assert events == [(3, 0, 0), (2, 11, 0), (1, 11, 0), (0, 11, 0), (0, 31, 2)]
    assert JournalReader(tmp_path).end() == 2
