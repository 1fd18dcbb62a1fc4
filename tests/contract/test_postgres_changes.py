"""Changes of tables of PostgreSQL: snapshot and logical replication, without Spark."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from crossing import by_hand, hostile, native_tables
from crossing.hostile import quoted
from interruptions import Interruptions
from penstock.cli.main import main
from penstock.connectors.postgres import PostgresSource
from penstock.connectors.postgres.changes import receiver, stream
from penstock.connectors.postgres.changes.table import PostgresTable
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import OptionError, PenstockError
from penstock.journal import JournalReader
from penstock.sdk.database.changes import Confirmed, TableReceiver, measuring
from penstock.sdk.database.changes.progress import DONE, Progress
from penstock.sdk.database.changes.truncations import read_truncations
from servers.gate import Gate
from servers.postgres import PASSWORD, Postgres
from table_changes import (
    Changes,
    changes_of,
    check_declared_columns,
    check_interrupted,
    check_without_snapshot,
    fails,
    pauses_of_writer,
)

Row = dict[str, Any]


@pytest.fixture
def schema(postgres: Postgres) -> Iterator[str]:
    name = postgres.new_schema()
    yield name
    with postgres.client() as client:
        client.execute(f"DROP PUBLICATION IF EXISTS {name}")
        query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
        client.execute(f"{query} WHERE slot_name = %s AND active", (name,))
        with suppress(psycopg.Error):
            client.execute("SELECT pg_drop_replication_slot(%s)", (name,))


@pytest.fixture
def db(postgres: Postgres, schema: str) -> Iterator[Any]:
    with postgres.client(options=f"-c search_path={schema}") as client:
        yield client


@pytest.fixture
def changes(postgres: Postgres, schema: str, tmp_path: Path) -> Iterator[Any]:
    started: list[Changes] = []

    def create(
        table: str = "t", state: str = "state", *, process: bool = False, **options: Any
    ) -> Changes:
        config = PostgresSource.config_type.model_validate(
            {**postgres.login, "table": f"{schema}.{table}", "changes": True, "slot": schema,
             **options}
        )  # fmt: skip
        made = changes_of(PostgresSource, config, tmp_path / state, in_thread=not process)
        started.append(made)
        return started[-1]

    yield create
    for each in started:
        with suppress(AttributeError, AssertionError):
            each.stop()


def rows_of(db: Any, table: str = "t", key: tuple[str, ...] = ("id",)) -> dict[Any, Row]:
    with db.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        rows = cursor.execute(f"SELECT * FROM {table}").fetchall()
    return {tuple(row[name] for name in key): row for row in rows}


def test_random_changes_during_the_snapshot(
    db: Any, changes: Any, postgres: Postgres, schema: str
) -> None:
    """Ends with the rows of the table, after two kills and changes of chunks that are read."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int, name text)")
    db.execute("INSERT INTO t SELECT n * 2, 0, 'first' FROM generate_series(1, 30000) AS n")
    changes = changes(process=True)
    ended = threading.Event()
    rng = random.Random(7)
    statements = (
        "INSERT INTO t VALUES (%s, 1, 'new') ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
        "UPDATE t SET n = n + 1 WHERE id BETWEEN %s - 5 AND %s + 5",
        "DELETE FROM t WHERE id = %s",
        "UPDATE t SET id = -id WHERE id = %s AND NOT EXISTS (SELECT FROM t WHERE id = -%s)",
    )

    def work() -> None:
        pauses = pauses_of_writer()
        with postgres.client(options=f"-c search_path={schema}") as client:
            client.autocommit = False
            while not ended.is_set():
                statement, key = rng.choice(statements), rng.randrange(1, 60_010)
                with suppress(psycopg.errors.UniqueViolation):
                    client.execute(statement, (key,) * statement.count("%s"))
                client.rollback() if key % 7 == 0 else client.commit()
                time.sleep(next(pauses))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        changes.start()
        for part in (5000, 15_000):
            changes.until(lambda part=part: len(changes.table()) > part)
            changes.kill()
        changes.until(lambda: {row["_op"] for row in changes.rows} == {"i", "u", "d"}
            and len(changes.table()) > 25_000)  # fmt: skip
    finally:
        ended.set()
        worker.join()
    expected = rows_of(db)
    changes.until(lambda: changes.table() == expected)
    # Each row comes once from the snapshot, and each change once.
    first = [row["id"] for row in changes.rows if row["snapshot"]]
    assert len(first) == len(set(first))


def test_transactions_are_read_once_and_in_order(db: Any, changes: Any) -> None:
    """A large transaction comes in parts; a kill within it neither loses nor repeats a row."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    changes = changes(process=True)
    changes.start()
    db.execute("INSERT INTO t VALUES (0, 0)")
    changes.until(lambda: len(changes.table()) == 1)
    with db.transaction():
        db.execute("INSERT INTO t SELECT n, 0 FROM generate_series(1, 20000) AS n")
        db.execute("UPDATE t SET n = 1 WHERE id > 10000")
    changes.until(lambda: len(changes.read()) > 0)
    changes.kill()
    changes.until(lambda: len([changes.read(), *changes.rows][1:]) >= 30_001)
    assert changes.table() == rows_of(db)
    assert len(changes.rows) == 30_001
    inserted = [row["id"] for row in changes.rows if row["_op"] == "i"]
    assert inserted == sorted(inserted)
    changes.stop()
    db.execute("INSERT INTO t VALUES (-1, 5)")
    changes.start()
    changes.until(lambda: changes.table() == rows_of(db))
    assert len(changes.rows) == 30_002


def test_a_transaction_larger_than_all_buffers(
    db: Any, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are passed on while it is received, through a journal that is smaller than it."""
    received, part, row = 1 << 16, 1 << 17, 3000
    monkeypatch.setattr(stream, "_MAX_BYTES", received)
    sizes: list[int] = []
    flush, enqueue = TableReceiver.flush, PostgresTable.enqueue

    async def measured_flush(table: Any) -> None:
        sizes.append(table._size)
        await flush(table)

    def measured_enqueue(table: Any, *change: Any) -> None:
        enqueue(table, *change)
        sizes.append(table._queue.size + table._size)

    monkeypatch.setattr(TableReceiver, "flush", measured_flush)
    monkeypatch.setattr(PostgresTable, "enqueue", measured_enqueue)
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db.execute("INSERT INTO t VALUES (-1, '')")
    changes = changes(journal={"max_size": 1 << 20})
    changes.start()
    changes.until(lambda: len(changes.read()) > 0)
    text = "x" * row
    with db.transaction():
        db.execute("INSERT INTO t SELECT n, %s FROM generate_series(1, 1500) AS n", (text,))
        db.execute("UPDATE t SET v = %s WHERE id %% 2 = 0", (text[1:],))

    def all_rows() -> bool:
        changes.read()
        changes.source.commit(changes._offset)
        return len(changes.rows) == 2251

    changes.until(all_rows)
    assert [row["id"] for row in changes.rows] == [-1, *range(1, 1501), *range(2, 1501, 2)]
    assert sum(len(row["v"]) for row in changes.rows) > 6 * (1 << 20)
    assert row < max(sizes) < 2 * (part + received + row), max(sizes)


def test_keys_and_values_that_are_not_sent(db: Any, changes: Any) -> None:
    db.execute(
        "CREATE TABLE t (a int, b text, big text, n int, twice int GENERATED ALWAYS AS (n * 2) "
        "STORED, padded char(5) GENERATED ALWAYS AS (b) STORED, tags text[], PRIMARY KEY (b, a))"
    )
    db.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    big = "x" * 9000
    db.execute("INSERT INTO t (a, b, big, n) VALUES (1, 'k', %s, 1)", (big,))
    changes = changes()
    changes.start()
    key = ("b", "a")
    changes.until(lambda: changes.table() == rows_of(db, key=key))
    db.execute("UPDATE t SET n = 2, tags = ARRAY['a,\"b', NULL]")
    changes.until(lambda: changes.table() == rows_of(db, key=key))
    assert changes.rows[-1]["big"] == big and changes.rows[-1]["twice"] == 4
    db.execute("UPDATE t SET a = 7")
    changes.until(lambda: changes.table() == rows_of(db, key=key))
    assert [(row["_op"], row["a"]) for row in changes.rows[-2:]] == [("d", 1), ("i", 7)]
    assert changes.rows[-1]["big"] == big
    db.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    db.execute("UPDATE t SET n = 3")
    db.execute("ALTER TABLE t DROP COLUMN tags")
    db.execute("INSERT INTO t (a, b, n) VALUES (8, 'k', 8)")
    changes.until(lambda: len(changes.table()) == 2)
    assert changes.table()["k", 7]["big"] == big
    assert changes.table()["k", 8]["tags"] is None
    db.execute("DELETE FROM t")
    changes.until(lambda: changes.table() == {})
    db.execute("ALTER TABLE t DROP twice, DROP padded, REPLICA IDENTITY DEFAULT")
    with db.transaction():
        for key in (1, 2):
            db.execute("INSERT INTO t VALUES (%s, 'k', %s, 1)", (key, big))
            db.execute("UPDATE t SET n = 2 WHERE a = %s", (key,))
        db.execute("UPDATE t SET big = 'y' WHERE a = 1")
        db.execute("UPDATE t SET n = 3 WHERE a = 1")
        db.execute("DELETE FROM t WHERE a = 2")
    known = len(changes.rows)
    changes.until(lambda: changes.received == known + 7)
    rows, (letter,) = changes.read_again()
    # An update without the value has that of a later update; it is null in no row.
    assert [(row["a"], row["_op"], row["n"], row["big"][:1]) for row in rows[known:-1]] == [
        (1, "i", 1, "x"), (1, "u", 2, "y"), (2, "i", 1, "x"), (1, "u", 2, "y"), (1, "u", 3, "y"),
    ]  # fmt: skip
    assert (rows[-1]["a"], rows[-1]["_op"]) == (2, "d")
    assert letter.error.code == "unavailable-value" and 'column "big"' in letter.error.message


def test_tables_of_one_slot_with_other_options(db: Any, changes: Any) -> None:
    """A truncation of both tables is received for the one that applies it."""
    for name in "tu":
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
        db.execute(f"INSERT INTO {name} VALUES (0)")
    applied = changes("t", on_truncate="apply", process=True)
    ignored = changes("u", state="u", on_truncate="ignore")
    applied.others = [ignored]
    applied.start()
    applied.until(lambda: is_complete(applied) and is_complete(ignored))
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("INSERT INTO u VALUES (1)")
    db.execute("TRUNCATE t, u")
    db.execute("INSERT INTO u VALUES (2)")
    db.execute("INSERT INTO t VALUES (2)")
    applied.until(lambda: (applied.received, ignored.received) == (4, 3))
    assert read_truncations(applied.source.directory) == [2]
    assert read_truncations(ignored.source.directory) == []
    assert [*ignored.table()] == [(0,), (1,), (2,)]


def is_complete(changes: Changes) -> bool:
    progress = Progress.read(changes.source._reader)
    return progress is not None and progress.chunk == DONE


def test_rows_before_updates(db: Any, changes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    with pytest.raises(PenstockError) as identity:
        changes(before_updates=True)
    assert identity.value.hint.endswith('"t" REPLICA IDENTITY FULL.')
    db.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    db.execute("INSERT INTO t VALUES (1, 'a')")
    changes = changes(before_updates=True)
    changes.start()
    changes.until(lambda: changes.table() == rows_of(db))
    db.execute("UPDATE t SET v = 'b'")
    db.execute("UPDATE t SET id = 2")
    db.execute("DELETE FROM t")
    changes.until(lambda: changes.table() == {})
    assert [(row["_op"], row["id"], row["v"]) for row in changes.rows] == [
        ("i", 1, "a"), ("ub", 1, "a"), ("u", 1, "b"), ("d", 1, "b"), ("i", 2, "b"), ("d", 2, "b")
    ]  # fmt: skip
    # A batch never ends between the two rows of an update.
    source = changes.source
    end, offset, ends = source.latest_offset(source.initial_offset()), source.initial_offset(), []
    source.config = source.config.model_copy(update={"max_records": 1})
    while offset != end:
        offset = source.limit_batch(offset, end)
        ends.append(offset["position"])
    assert ends == [1, 3, 4, 5, 6]
    start = source._offset(source.initial_offset(), 1)
    for durable, latest in ((2, 1), (3, 3)):
        monkeypatch.setattr(JournalReader, "end", lambda _, durable=durable: durable)
        assert source.latest_offset(start)["position"] == latest


def test_own_types_are_the_same_in_table_query_snapshot_and_stream(
    changes: Any, postgres: Postgres, schema: str, tmp_path: Path
) -> None:
    tables = native_tables.postgres(postgres, schema)
    tables.query(f"ALTER TABLE {schema}.native ADD PRIMARY KEY (id)")
    tables.fill()
    table = {**tables.full, "cursor_columns": ["id"]}
    rows, letters = by_hand.read(tmp_path / "table", table)
    query = {**table, "query": f"SELECT * FROM {schema}.native"}
    del query["table"]
    same, same_letters = by_hand.read(tmp_path / "query", query)
    assert str(same.to_pylist()) == str(rows.to_pylist()) and same_letters == letters
    copies = changes("native")
    copies.start()
    count = len(rows) + len(letters)
    copies.until(lambda: copies.received == count)
    tables.query(f"UPDATE {schema}.native SET id = id")
    copies.until(lambda: copies.received == 2 * count)
    found, rejected = copies.read_again()
    # VARIANT is checked after the source.
    late = [id_ for id_, message in letters.items() if "more digits than a double" in message]
    expected = {row["id"]: str(row) for row in rows.to_pylist()}
    for is_snapshot in (True, False):
        read = [row for row in found if row["snapshot"] == is_snapshot and row["id"] not in late]
        texts = {row["id"]: str({name: row[name] for name in rows.column_names}) for row in read}
        assert texts == expected and len(read) == len(rows)
    messages = Counter((json.loads(e.payload)["row"]["id"], e.error.message) for e in rejected)
    assert messages == Counter({key: 2 for key in letters.items() if key[0] not in late})


def test_the_slot_advances_while_nothing_changes(
    db: Any, changes: Any, postgres: Postgres, schema: str
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("CREATE TABLE other (id int)")
    changes = changes()
    changes.start()
    db.execute("INSERT INTO t VALUES (1)")
    changes.until(lambda: len(changes.table()) == 1)
    db.execute("INSERT INTO other SELECT * FROM generate_series(1, 1000)")
    (position,) = db.execute("SELECT pg_current_wal_lsn()").fetchone()

    def confirmed() -> bool:
        query = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = %s"
        (reached,) = db.execute(query, (position, schema)).fetchone()
        return bool(reached)

    changes.until(confirmed)


def test_a_quiet_server_is_not_lost(db: Any, changes: Any) -> None:
    """It sends nothing by itself, for longer than `timeout`."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("INSERT INTO t VALUES (1)")
    reader = changes(timeout="2s")
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    failures = reader.failures
    time.sleep(5)
    assert reader.failures == failures


def test_the_size_of_the_log_that_the_slot_keeps(
    db: Any, changes: Any, postgres: Postgres, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open transaction keeps the log after its begin, although all its changes were read."""
    monkeypatch.setattr(measuring, "MEASURE_SECONDS", 0.1)
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    changes = changes()
    changes.start()
    changes.until(lambda: changes.source.retained() is not None)
    with postgres.client() as other:
        other.autocommit = False
        other.execute("SELECT pg_current_xact_id()")
        db.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 2000000))")
        changes.until(lambda: changes.source.retained().size > 2_000_000)


def test_a_table_that_is_renamed_is_an_error(db: Any, changes: Any, schema: str) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    reader = changes()
    reader.start()
    db.execute("INSERT INTO t VALUES (1)")
    reader.until(lambda: len(reader.table()) == 1)
    db.execute("ALTER TABLE t RENAME TO u")
    db.execute("INSERT INTO u VALUES (2)")
    assert fails(reader, f'under the name "{schema}.u"').code == "not-found"
    db.execute("ALTER TABLE u RENAME TO t")
    assert fails(reader, f'under the name "{schema}.u"').code == "not-found"


def test_a_table_that_is_replaced_is_a_loss(
    db: Any, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at the next start. The publication does not have the other table."""
    monkeypatch.setattr(receiver, "CHECK_SECONDS", 0.1)
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("CREATE TABLE u (id int PRIMARY KEY)")
    db.execute("INSERT INTO u VALUES (7)")
    reader = changes()
    reader.start()
    db.execute("INSERT INTO t VALUES (1)")
    reader.until(lambda: len(reader.table()) == 1)
    db.execute("ALTER TABLE t RENAME TO old; ALTER TABLE u RENAME TO t")
    for _ in range(2):
        assert fails(reader, "was replaced by another table").code == "data-gone"
    again = changes(on_data_loss="snapshot")
    again.start()
    assert [row["id"] for row in again.await_loss(2)] == [1, 7]
    db.execute("INSERT INTO t VALUES (8)")
    assert again.await_loss(3)[-1]["id"] == 8


def test_changes_without_a_snapshot(db: Any, changes: Any, schema: str) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    check_without_snapshot(
        changes(snapshot=False), lambda id_: db.execute("INSERT INTO t VALUES (%s)", (id_,))
    )


def test_a_slot_from_before_the_first_start(db: Any, changes: Any, schema: str) -> None:
    """Without a snapshot the changes since its creation are read; it must not be replaced."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute(f"CREATE PUBLICATION {schema} FOR TABLE t")
    db.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (schema,))
    db.execute("INSERT INTO t VALUES (1)")
    reader = changes(snapshot=False)
    reader.start()
    reader.until(lambda: [*reader.table()] == [(1,)])
    reader.stop()
    empty = changes(snapshot=False, state="other")
    empty.start()
    empty.until(lambda: Confirmed(empty.source.directory).position > 0)
    empty.stop()
    is_active = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    empty.until(lambda: not db.execute(is_active, (schema,)).fetchone()[0])
    db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))
    assert fails(empty, "does not exist: changes since").code == "data-gone"


def test_losses_are_errors(db: Any, changes: Any, postgres: Postgres, schema: str) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("INSERT INTO t VALUES (1)")
    first = changes()
    first.start()
    first.until(lambda: len(first.table()) == 1)
    first.stop()
    # A second state of the pipeline reads the same slot.
    second = changes(state="second")
    second.start()
    second.until(lambda: len(second.table()) == 1)
    db.execute("INSERT INTO t VALUES (2)")
    second.until(lambda: len(second.table()) == 2)
    position = db.execute("SELECT pg_current_wal_lsn()").fetchone()[0]
    query = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = %s"
    second.until(lambda: db.execute(query, (position, schema)).fetchone()[0])
    second.stop()
    error = fails(first, "was read by another pipeline")
    assert error.code == "data-gone" and "pg_drop_replication_slot" in str(error.hint)
    db.execute("TRUNCATE t")
    assert fails(second, "was truncated").code == "truncated"
    db.execute(f"DROP PUBLICATION {schema}")
    assert "CREATE PUBLICATION" in str(fails(second, "does not have the table").hint)
    db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))
    db.execute(f"CREATE PUBLICATION {schema} FOR TABLE t")
    assert fails(second, "does not exist: changes since").code == "data-gone"


@pytest.mark.parametrize("policy", ["continue", "snapshot"])
def test_going_on_after_a_loss(
    db: Any, changes: Any, postgres: Postgres, schema: str, policy: str
) -> None:
    """A slot that was dropped, and one that the server has invalidated."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    db.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 2)
    reader.stop()
    is_active = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    reader.until(lambda: not db.execute(is_active, (schema,)).fetchone()[0])
    db.execute("UPDATE t SET n = 1 WHERE id = 1")
    if policy == "continue":
        db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))
    else:
        with postgres.client("postgres", "postgres") as root:
            _invalidate_slots(root)
        assert "on_data_loss: snapshot" in str(fails(reader, "has lost changes").hint)
    again = changes(on_data_loss=policy)
    again.start()
    read = [] if policy == "continue" else [(1, 1), (2, 0)]
    rows = again.await_loss(2 + len(read))
    assert sorted((row["id"], row["n"]) for row in rows[2:]) == read
    again.until(lambda: (db.execute(is_active, (schema,)).fetchone() or (False,))[0])
    db.execute("INSERT INTO t VALUES (3, 3)")
    assert again.await_loss(3 + len(read))[-1]["id"] == 3


def _invalidate_slots(root: Any) -> None:
    """Makes slots that no one reads lose their log."""
    root.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    try:
        root.execute("SELECT pg_reload_conf()")
        for _ in range(4):
            root.execute("SELECT pg_logical_emit_message(false, 'test', '')")
            root.execute("SELECT pg_switch_wal()")
        root.execute("CHECKPOINT")
    finally:
        root.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        root.execute("SELECT pg_reload_conf()")


def test_columns_that_change(db: Any, changes: Any) -> None:
    """Rows after a change of the schema have all values, also if it comes between two runs."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, tags int[], old text)")
    db.execute("INSERT INTO t SELECT n, n, ARRAY[n], 'old' FROM generate_series(1, 5) AS n")
    changes = changes()
    changes.start()
    changes.until(lambda: changes.table() == rows_of(db))
    db.execute("UPDATE t SET n = 0 WHERE id = 1")
    db.execute("ALTER TABLE t ADD COLUMN added numeric(5, 2), ADD twice int "
               "GENERATED ALWAYS AS (id * 2) STORED")  # fmt: skip
    db.execute("INSERT INTO t VALUES (6, 6, ARRAY[6], 'x', 1.25)")
    db.execute("ALTER TABLE t ALTER n TYPE bigint, ALTER tags TYPE bigint[], ADD doc jsonb")
    big = 1 << 40
    values = f"7, {big}, ARRAY[{big}], 'x', 2, DEFAULT, '{{\"a\": 1}}'"
    db.execute(f"INSERT INTO t VALUES ({values})")
    changes.until(lambda: len(changes.table()) == 7)
    assert changes.table()[6,] == {
        "id": 6, "n": 6, "tags": [6], "old": "x", "added": Decimal("1.25"), "twice": 12,
        "doc": None,
    }  # fmt: skip
    assert changes.table()[7,]["n"] == big and changes.table()[7,]["tags"] == [big]
    assert changes.table()[7,]["doc"] == '{"a": 1}' and changes.table()[1,]["added"] is None
    changes.stop()
    db.execute("ALTER TABLE t DROP COLUMN old")
    db.execute("ALTER TABLE t ALTER added TYPE numeric(12, 4)")
    db.execute("ALTER TABLE t RENAME COLUMN doc TO document")
    db.execute("ALTER TABLE t ALTER n TYPE int USING 0")
    db.execute("INSERT INTO t VALUES (8, 8, NULL, 12345678.1234, DEFAULT, '[]')")
    changes.start()
    changes.until(lambda: len(changes.table()) == 8)
    assert changes.table()[8,] == {
        "id": 8, "n": 8, "tags": None, "old": None, "added": Decimal("12345678.1234"), "twice": 16,
        "doc": None, "document": "[]",
    }  # fmt: skip
    assert str(changes.source.columns.field("n").type) == "int64"


def test_changes_of_types_without_a_common_type(db: Any, changes: Any) -> None:
    """The error comes before the first row that does not fit; declared columns go on."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, code text, other int)")
    changes = changes()
    changes.start()
    db.execute("INSERT INTO t VALUES (1, '1', 1)")
    changes.until(lambda: len(changes.table()) == 1)
    db.execute("ALTER TABLE t ALTER code TYPE int USING code::int")
    db.execute("INSERT INTO t VALUES (2, 2, 2)")
    error = fails(changes, 'column "code" of the table')
    assert error.code == "incompatible-schema" and "was STRING and is INT at " in error.message
    assert "schema" in str(error.hint)
    # The error comes again, and the row is not lost.
    fails(changes, 'column "code" of the table')
    assert len(changes.table()) == 1
    changes.source.follows_schema = False
    db.execute("ALTER TABLE t ADD COLUMN more int")
    db.execute("INSERT INTO t VALUES (3, 3, 3, 3)")
    changes.start()
    changes.until(lambda: len(changes.table()) == 3)
    assert changes.table()[3,] == {"id": 3, "code": "3", "other": 3}
    changes.stop()
    changes.source.follows_schema = True
    db.execute('ALTER TABLE t ADD COLUMN "OTHER" int; ALTER TABLE t ALTER code TYPE text')
    db.execute("INSERT INTO t VALUES (4, '4', 4, 4, 4)")
    assert 'has the name of the column "other"' in str(fails(changes, '"OTHER"').message)


def test_random_changes_of_rows_and_columns(
    db: Any, changes: Any, postgres: Postgres, schema: str
) -> None:
    """Columns are added and widened while rows change and chunks are read, with three kills."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n smallint)")
    db.execute("INSERT INTO t SELECT n, 0 FROM generate_series(1, 25000) AS n")
    changes = changes(process=True)
    ended, altered = threading.Event(), threading.Event()
    rng = random.Random(3)

    def work() -> None:
        pauses = pauses_of_writer()
        with postgres.client(options=f"-c search_path={schema}") as client:
            client.autocommit = False
            columns = ["n"]
            while not ended.is_set():
                key, value = rng.randrange(1, 26_000), rng.randrange(-32_000, 32_000)
                if altered.is_set():
                    altered.clear()
                    columns.append(f"c{len(columns)}")
                    client.execute(f"ALTER TABLE t ADD COLUMN {columns[-1]} int")
                    widths = ("int", "bigint", "numeric(30, 4)")
                    type_ = widths[min(len(columns) - 2, 2)]
                    client.execute(f"ALTER TABLE t ALTER n TYPE {type_}")
                    client.commit()
                name = rng.choice(columns)
                client.execute(
                    f"INSERT INTO t (id, {name}) VALUES (%s, %s) "
                    f"ON CONFLICT (id) DO UPDATE SET {name} = excluded.{name}", (key, value)
                )  # fmt: skip
                client.execute("DELETE FROM t WHERE id BETWEEN %s AND %s", (key + 1, key + 3))
                client.rollback() if key % 9 == 0 else client.commit()
                time.sleep(next(pauses))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        changes.start()
        for part in (3000, 9000, 18_000):
            changes.until(lambda part=part: len([*changes.rows, *changes.read()]) > part)
            altered.set()
            changes.until(lambda: not altered.is_set())
            changes.kill()
        count = len(changes.rows)
        changes.until(lambda: len([*changes.rows, *changes.read()]) > count + 2000)
    finally:
        ended.set()
        worker.join()
    expected = rows_of(db)
    changes.until(lambda: changes.table() == expected)
    assert {"c1", "c2", "c3"} < {*changes.source.columns.names}
    first = [row["id"] for row in changes.rows if row["snapshot"]]
    assert len(first) == len(set(first))


def test_tables_of_one_slot(db: Any, changes: Any, postgres: Postgres, schema: str) -> None:
    """Tables are read by one process, which is killed; one is added later, one is read again."""
    for name in ("t", "u", "v"):
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, n int)")
        db.execute(f"INSERT INTO {name} SELECT n, 0 FROM generate_series(1, 4000) AS n")
    first, second = changes("t", process=True), changes("u", state="u")
    first.others = [second]
    ended, rng = threading.Event(), random.Random(5)

    def work() -> None:
        pauses = pauses_of_writer()
        with postgres.client(options=f"-c search_path={schema}") as client:
            client.autocommit = False
            while not ended.is_set():
                key = rng.randrange(1, 13_000)
                for name in sorted(rng.sample("tuv", 2)):
                    client.execute(
                        f"INSERT INTO {name} VALUES (%s, 1) ON CONFLICT (id) "
                        f"DO UPDATE SET n = {name}.n + 1", (key,)
                    )  # fmt: skip
                    client.execute(f"DELETE FROM {name} WHERE id = %s", (key + 20_000,))
                client.rollback() if key % 9 == 0 else client.commit()
                time.sleep(next(pauses))

    worker = threading.Thread(target=work)
    worker.start()
    with postgres.client(options=f"-c search_path={schema}") as open_:
        try:
            first.start()
            first.until(lambda: len(second.table()) > 1500)
            first.kill()
            first.until(lambda: min(len(first.table()), len(second.table())) >= 4000)
            first.stop()
            open_.autocommit = False
            open_.execute("INSERT INTO v VALUES (30000, 5)")
            third, again = changes("v", state="v"), changes("u", state="again")
            first.others = [third, again]
            first.start()
            first.until(lambda: _is_published(db, schema, "v"))
            time.sleep(1)
            open_.execute("INSERT INTO v VALUES (30001, 5)")
            assert third.read() == []
            open_.commit()
            first.until(lambda: len(third.table()) > 1500)
            first.kill()
            first.until(lambda: min(len(third.table()), len(again.table())) >= 4000)
        finally:
            ended.set()
            worker.join()
    for table, name in ((first, "t"), (third, "v"), (again, "u")):
        expected = rows_of(db, name)
        first.until(lambda table=table, expected=expected: table.table() == expected)
        keys = [row["id"] for row in table.rows if row["snapshot"]]
        assert len(keys) == len(set(keys))
    assert (30_001,) in third.table()
    query = "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE %s"
    assert db.execute(query, (f"%{schema}%",)).fetchone() == (1,)


def _is_published(db: Any, publication: str, table: str) -> bool:
    query = "SELECT count(*) FROM pg_publication_tables WHERE pubname = %s AND tablename = %s"
    return bool(db.execute(query, (publication, table)).fetchone()[0])


def test_discovered_tables(
    db: Any, postgres: Postgres, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, tags text[]); CREATE TABLE keyless (x int)")
    url, auth = postgres.login["url"], postgres.login["auth"]
    login = [f"auth.{name}={value}" for name, value in auth.items()]
    words = ["discover", "postgres", "--url", url, *(f"--set={text}" for text in login)]
    assert main([*words, "--json", f"{schema}.t", f"{schema}.keyless"]) == 0
    with_changes, without = json.loads(capsys.readouterr().out)
    assert with_changes["changes"] and with_changes["primary_key"] == ["id"]
    assert not without["changes"] and "REPLICA IDENTITY FULL" in without["errors"][0]["hint"]
    assert main([*words, f"{schema}.t", f"{schema}.keyless"]) == 0
    text = capsys.readouterr().out
    assert f"# {schema}.keyless: the changes cannot be read: the table" in text
    assert text.count("changes: true") == 1
    assert PASSWORD not in text.replace(f"username: {auth['username']}", "")
    assert "# Set the environment variable POSTGRES_PASSWORD." in text
    assert "password: ${POSTGRES_PASSWORD}" in text and "slot:" not in text
    db.execute("CREATE TABLE other (id int PRIMARY KEY)")
    assert main([*words, f"{schema}.t", f"{schema}.other", f"{schema}.keyless"]) == 0
    assert capsys.readouterr().out.count("slot: penstock_postgres") == 2
    assert not db.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (schema,)).fetchall()


def test_requirements_are_named_with_their_statements(
    db: Any, changes: Any, postgres: Postgres, schema: str
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("ALTER TABLE t REPLICA IDENTITY NOTHING")
    with pytest.raises(PenstockError) as identity:
        changes()
    assert identity.value.hint == (f'Run ALTER TABLE "{schema}"."t" REPLICA IDENTITY DEFAULT.')
    db.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    db.execute("CREATE TABLE keyless (id int)")
    with pytest.raises(PenstockError, match="updates and deletes of the table fail") as keyless:
        changes("keyless")
    assert f'Run ALTER TABLE "{schema}"."keyless" ADD PRIMARY KEY' in str(keyless.value.hint)
    db.execute("CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(PenstockError, match="is a view"):
        changes("v")
    with pytest.raises(OptionError, match="there is no table"):
        changes("tt")
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"CREATE ROLE {schema} LOGIN PASSWORD '{PASSWORD}'")
    login = {"auth": {"username": schema, "password": PASSWORD}}
    db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
    with pytest.raises(PenstockError, match="may not read changes") as denied:
        changes(**login)
    assert denied.value.hint == f"Run ALTER ROLE {schema} REPLICATION."
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"ALTER ROLE {schema} REPLICATION")
    with pytest.raises(PenstockError, match="has no privilege SELECT") as denied:
        changes(**login)
    assert denied.value.hint == f'Run GRANT SELECT ON "{schema}"."t" TO {schema}.'
    db.execute(f"GRANT SELECT ON t TO {schema}")
    reader = changes(**login)
    error = fails(reader, "cannot create the publication")
    assert f'FOR TABLE "{schema}"."t"' in str(error.hint)
    # A role that may only read needs a publication of the owner.
    db.execute(f"CREATE PUBLICATION {schema} FOR TABLE t")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("ALTER TABLE t RENAME TO renamed")
    assert fails(reader, "there is no table").code == "not-found"
    db.execute("ALTER TABLE renamed RENAME TO t")
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)


def test_partitions_and_publications_of_others(db: Any, changes: Any, schema: str) -> None:
    """A publication that leaves out changes is an error; other tables of it are not read."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    db.execute("CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100)")
    db.execute("CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (200)")
    db.execute("CREATE TABLE other (id int PRIMARY KEY)")
    db.execute(f"CREATE PUBLICATION {schema} FOR TABLE t, other WITH (publish = 'insert')")
    error = fails(changes(), "leaves out changes")
    assert error.hint == (
        f"Run ALTER PUBLICATION \"{schema}\" SET (publish = 'insert, update, delete, truncate')."
    )
    db.execute(f"ALTER PUBLICATION {schema} SET (publish = 'insert, update, delete')")
    truncations = fails(changes(), "leaves out truncations of the table")
    assert truncations.hint == f"{str(error.hint)[:-1]}, or set on_truncate: ignore."
    error = fails(changes(on_truncate="ignore"), "leaves out changes")
    assert "publish_via_partition_root" in str(error.hint)
    db.execute(f"ALTER PUBLICATION {schema} SET (publish = 'insert, update, delete, truncate')")
    error = fails(changes(), "leaves out changes")
    assert error.hint == (
        f'Run ALTER PUBLICATION "{schema}" SET (publish_via_partition_root = true).'
    )
    db.execute(f"ALTER PUBLICATION {schema} SET (publish_via_partition_root = true)")
    db.execute("INSERT INTO t VALUES (1), (150)")
    reader = changes()
    reader.start()
    reader.until(lambda: reader.table() == rows_of(db))
    db.execute("INSERT INTO other VALUES (7)")
    db.execute("UPDATE t SET id = 151 WHERE id = 1")
    db.execute("INSERT INTO t VALUES (2)")
    reader.until(lambda: reader.table() == rows_of(db))
    assert sorted(reader.table()) == [(2,), (150,), (151,)]
    reader.stop()
    reader = changes(on_truncate="apply")
    reader.start()
    known = reader.received
    db.execute("TRUNCATE t, other")
    db.execute("INSERT INTO t VALUES (3)")
    reader.until(lambda: reader.received == known + 2)
    assert read_truncations(reader.source.directory) == [known]


def test_publications_of_a_part_of_a_table(db: Any, changes: Any, schema: str) -> None:
    """The snapshot has all rows and columns, so their changes would be missing in silence."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, code text, n int)")
    db.execute("INSERT INTO t VALUES (1, 'a', 1), (7, 'g', 7)")
    db.execute(f"CREATE PUBLICATION {schema} FOR TABLE t WHERE (id > 5)")
    error = fails(changes(), "leaves out rows (WHERE) of the table")
    assert error.code == "incomplete-publication"
    assert f'ALTER PUBLICATION "{schema}" ADD TABLE "{schema}"."t"' in str(error.hint)
    reader = changes(state="rows", snapshot=False)
    reader.start()
    reader.until(lambda: Confirmed(reader.source.directory).position > 0)
    db.execute("UPDATE t SET n = 10 * n")
    reader.until(lambda: reader.table() == {(7,): {"id": 7, "code": "g", "n": 70}})
    reader.stop()
    db.execute(f"ALTER PUBLICATION {schema} SET TABLE t (id, n)")
    assert "the columns code of" in fails(changes(state="columns"), "leaves out").message
    db.execute(f"ALTER PUBLICATION {schema} SET TABLE t (id, n, code)")
    reader = changes(state="all")
    reader.start()
    reader.until(lambda: reader.table() == rows_of(db))


def test_a_publication_that_loses_its_table(
    db: Any, changes: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "CHECK_SECONDS", 0.1)
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("CREATE TABLE other (id int PRIMARY KEY)")
    db.execute("INSERT INTO t VALUES (1)")
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    db.execute(f"ALTER PUBLICATION {schema} SET TABLE other")
    db.execute("INSERT INTO t VALUES (2)")
    assert fails(reader, "does not have the table").code == "data-gone"


def test_identities_without_the_key(db: Any, changes: Any, schema: str) -> None:
    """Deletes and updates of the key would leave their rows in the targets."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL) PARTITION BY RANGE (id)")
    db.execute("CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100)")
    db.execute("CREATE UNIQUE INDEX by_code ON low (code)")
    db.execute("ALTER TABLE low REPLICA IDENTITY USING INDEX by_code")
    with pytest.raises(PenstockError, match='low" has the columns code, so') as identity:
        changes()
    assert identity.value.code == "replica-identity"
    db.execute("ALTER TABLE low REPLICA IDENTITY NOTHING")
    with pytest.raises(PenstockError, match='low" has REPLICA IDENTITY NOTHING'):
        changes()
    db.execute("CREATE UNIQUE INDEX by_both ON low (code, id)")
    db.execute("ALTER TABLE low REPLICA IDENTITY USING INDEX by_both")
    db.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 3)
    db.execute("UPDATE t SET code = 'x' WHERE id = 1")
    db.execute("UPDATE t SET id = 9 WHERE id = 2")
    db.execute("DELETE FROM t WHERE id = 3")
    reader.until(lambda: reader.table() == rows_of(db))


@pytest.mark.parametrize(
    "change", ["ALTER TABLE t REPLICA IDENTITY USING INDEX by_code",
               "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (code)",
               "ALTER TABLE t RENAME COLUMN id TO number"],
)  # fmt: skip
def test_identities_that_lose_the_key(db: Any, changes: Any, schema: str, change: str) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL)")
    db.execute("CREATE UNIQUE INDEX by_code ON t (code)")
    db.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 2)
    db.execute(change)
    db.execute("DELETE FROM t WHERE code = 'a'")
    error = fails(reader, "so updates and deletes do not have the primary_key id")
    assert error.code == "replica-identity" and "remove the state" in str(error.hint)
    assert reader.received == 2


def test_whole_rows_that_end(db: Any, changes: Any, schema: str) -> None:
    """`before_updates` would lack the rows before updates."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    db.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    db.execute("INSERT INTO t VALUES (1, 1)")
    reader = changes(before_updates=True)
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    db.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    db.execute("UPDATE t SET n = 2")
    hint = str(fails(reader, "only keys of the rows").hint)
    assert "REPLICA IDENTITY FULL. Then remove the state" in hint and reader.received == 1


def test_a_server_that_restarts(tmp_path: Path) -> None:
    """A kill of the server neither loses nor repeats a change. As a standby it is an error.

    The snapshot has ended before: a row that is inserted while it is read may be received twice.
    """
    with Postgres() as server:
        config = PostgresSource.config_type.model_validate(
            {**server.login, "table": "t", "changes": True}
        )
        with server.client() as client:
            client.execute("CREATE TABLE t (id serial PRIMARY KEY)")
        changes = changes_of(PostgresSource, config, tmp_path)
        changes.start()
        try:
            progress = None
            while progress is None or progress.chunk != DONE:
                with server.client() as client:
                    client.execute("INSERT INTO t DEFAULT VALUES")
                time.sleep(0.1)
                progress = Progress.read(changes.source._reader)
            with server.client() as client:
                (known,) = client.execute("SELECT count(*) FROM t").fetchone()
            changes.until(lambda: len(changes.table()) == known)
            before = len(changes.rows)
            for total in (1000, 2000):
                with server.client() as client:
                    for _ in range(1000):
                        client.execute("INSERT INTO t DEFAULT VALUES")
                if total == 1000:
                    changes.until(lambda: len(changes.table()) > known + 100)
                    server.kill()
                    server.start()
            with server.client() as client:
                (count,) = client.execute("SELECT count(*) FROM t").fetchone()
            changes.until(lambda: len(changes.table()) == count)
            assert len(changes.rows) - before == count - known == 2000
        finally:
            changes.stop()
        server.kill()
        (server.directory.path / "data" / "standby.signal").touch()
        server.start()
        with pytest.raises(PenstockError, match="is a standby; changes") as standby:
            changes.source.check()
        assert standby.value.code == "standby" and "primary" in str(standby.value.hint)


def test_interrupted_connections(
    db: Any, postgres: Postgres, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresConnection, "silence", 0.2)
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with Gate(postgres.port) as gate:
        options = Interruptions(gate, PASSWORD).through(
            postgres.login, table=f"{schema}.t", changes=True, slot=schema, timeout="1s"
        )
        config = PostgresSource.config_type.model_validate(options)
        changes = changes_of(PostgresSource, config, tmp_path, in_thread=True)
        check_interrupted(changes, gate, lambda id_: db.execute(f"INSERT INTO t VALUES ({id_})"))


def test_hostile_names(db: Any, postgres: Postgres, schema: str, tmp_path: Path) -> None:
    """Names of a schema, a table, columns and a publication have marks of SQL."""
    place, column = schema + hostile.MARKS[:40], hostile.MARKS
    texts = [text for text in hostile.TEXTS if "\0" not in text]
    table = f"{quoted(place)}.{quoted(hostile.MARKS)}"
    db.execute(f"CREATE SCHEMA {quoted(place)}")
    db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {quoted(column)} text)")
    config = PostgresSource.config_type.model_validate(
        {**postgres.login, "table": table, "changes": True, "slot": schema, "publication": place}
    )
    changes = changes_of(PostgresSource, config, tmp_path, in_thread=True)
    changes.start()
    try:
        for row in enumerate(texts):
            db.execute(f"INSERT INTO {table.replace('%', '%%')} VALUES (%s, %s)", row)
            if row[0] == 0:
                changes.until(lambda: len(changes.table()) == 1)
        changes.until(lambda: len(changes.table()) == len(texts))
        found = {id_: row[column] for (id_,), row in changes.table().items()}
        assert found == dict(enumerate(texts))
    finally:
        changes.stop()
        db.execute(f"DROP PUBLICATION {quoted(place)}")


def test_declared_columns_that_the_table_lacks(db: Any, changes: Any) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
    db.execute("INSERT INTO t VALUES (1, 'a')")
    check_declared_columns(changes())
