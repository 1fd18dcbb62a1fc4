"""Changes of tables of MariaDB: snapshot and binary log, without Spark."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import DictCursor

from interruptions import Interruptions
from penstock.cli.main import main
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.mysql.changes import snapshot
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.core.errors import OptionError, PenstockError
from penstock.sdk import Read
from penstock.sdk.database.changes.progress import DONE, Progress
from servers.gate import Gate
from servers.mariadb import DATABASE, PASSWORD, USER, MariaDb
from table_changes import (
    Changes,
    Row,
    changes_of,
    check_declared_columns,
    check_interrupted,
    check_without_snapshot,
    fails,
    pauses_of_writer,
)

Execute = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def database(mariadb: MariaDb) -> str:
    return mariadb.new_database()


def executor(client: Any) -> Execute:
    def execute(*statements: str) -> list[tuple[Any, ...]]:
        with client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    return execute


@pytest.fixture
def db(mariadb: MariaDb, database: str) -> Iterator[Execute]:
    with mariadb.client(database=database) as client:
        yield executor(client)


@pytest.fixture
def changes(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[Any]:
    started: list[Changes] = []

    def create(
        table: str = "t", state: str = "state", *, process: bool = False, **options: Any
    ) -> Changes:
        config = MysqlSource.config_type.model_validate(
            {**mariadb.login, "table": f"{database}.{table}", "changes": True, **options}
        )
        made = changes_of(MysqlSource, config, tmp_path / state, in_thread=not process)
        started.append(made)
        return started[-1]

    yield create
    for each in started:
        with suppress(AttributeError, AssertionError):
            each.stop()


def rows_of(
    mariadb: MariaDb, database: str, table: str = "t", key: tuple[str, ...] = ("id",)
) -> dict[Any, Row]:
    with (
        mariadb.client(database=database, cursorclass=DictCursor) as client,
        client.cursor() as cursor,
    ):
        cursor.execute(f"SELECT * FROM `{table}`")
        return {tuple(row[name] for name in key): row for row in cursor.fetchall()}


def await_end_of_snapshot(changes: Changes, change: Callable[[], Any]) -> None:
    """Changes rows until a change comes after the snapshot."""

    def is_read() -> bool:
        change()
        progress = Progress.read(changes.source._reader)
        return progress is not None and progress.chunk == DONE

    changes.until(is_read)


@pytest.mark.parametrize("has_snapshot_position", [True, False])
def test_random_changes_during_the_snapshot(
    db: Execute, changes: Any, mariadb: MariaDb, database: str, has_snapshot_position: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Ends with the rows of the table, after two ends and changes of chunks that are read.

    A process is killed, and a thread stops.
    """
    rows, parts = (25_000, (5000, 15_000)) if has_snapshot_position else (6000, (1200, 3000))
    if not has_snapshot_position:
        monkeypatch.setattr(snapshot, "_snapshot_position", lambda connection: None)
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 1200)
    db(
        "CREATE TABLE t (id bigint unsigned, part varchar(5), n int, PRIMARY KEY (part, id))",
        "INSERT INTO t SELECT 9007199254740993 + seq * 2, if(seq % 3, 'a', 'ß'), 0 "
        f"FROM seq_1_to_{rows}",
    )
    changes = changes(process=has_snapshot_position)
    ended = threading.Event()
    rng = random.Random(7)
    statements = (
        "INSERT INTO t VALUES (%s, 'a', 1) ON DUPLICATE KEY UPDATE n = n + 1",
        "UPDATE t SET n = n + 1 WHERE part = 'a' AND id BETWEEN %s AND %s + 10",
        "DELETE FROM t WHERE part = 'a' AND id = %s",
        "UPDATE t SET part = 'ß' WHERE part = 'a' AND id = %s",
    )

    def work() -> None:
        pauses = pauses_of_writer()
        with mariadb.client(database=database, autocommit=False) as client:
            while not ended.is_set():
                statement = rng.choice(statements)
                key = 9007199254740993 + rng.randrange(1, 12_010)
                with client.cursor() as cursor, suppress(Exception):
                    cursor.execute(statement, (key,) * statement.count("%s"))
                client.rollback() if key % 7 == 0 else client.commit()
                time.sleep(next(pauses))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        changes.start()
        for part in parts:
            changes.until(lambda part=part: len(changes.table()) > part)
            if has_snapshot_position:
                changes.kill()
            else:
                changes.stop()
                changes.start()
        changes.until(lambda: {row["_op"] for row in changes.rows} == {"i", "u", "d"}
            and len(changes.table()) > parts[1])  # fmt: skip
    finally:
        ended.set()
        worker.join()
    key = ("part", "id")
    changes.until(lambda: changes.table() == rows_of(mariadb, database, key=key))
    # Each row comes once from the snapshot.
    first = [(row["part"], row["id"]) for row in changes.rows if row["snapshot"]]
    assert len(first) == len(set(first))


def test_changes_without_a_snapshot(db: Execute, changes: Any) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY)")
    check_without_snapshot(changes(snapshot=False), lambda id_: db(f"INSERT INTO t VALUES ({id_})"))


def test_transactions_are_read_once_and_in_order(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    """A large transaction comes in parts; a kill within it neither loses nor repeats a row."""
    db("CREATE TABLE t (id int PRIMARY KEY, n int)")
    changes = changes(process=True)
    changes.start()
    db("INSERT INTO t VALUES (0, 0)")
    await_end_of_snapshot(changes, lambda: db("UPDATE t SET n = n + 1"))
    changes.until(lambda: changes.table() == rows_of(mariadb, database))
    base = len(changes.rows)
    db(
        "START TRANSACTION", "INSERT INTO t SELECT seq, 0 FROM seq_1_to_20000",
        "UPDATE t SET n = 1 WHERE id > 10000", "COMMIT",
    )  # fmt: skip
    changes.until(lambda: len(changes.read()) > 0)
    changes.kill()
    changes.until(lambda: len([changes.read(), *changes.rows][1:]) - base >= 30_000)
    assert changes.table() == rows_of(mariadb, database)
    assert len(changes.rows) - base == 30_000
    inserted = [row["id"] for row in changes.rows[base:] if row["_op"] == "i"]
    assert inserted == sorted(inserted)
    ((gtid,),) = db("SELECT @@gtid_binlog_pos")
    assert changes.rows[-1]["transaction"] == gtid and changes.rows[-1]["lsn"].startswith("bin.0")
    changes.stop()
    db("FLUSH BINARY LOGS", "INSERT INTO t VALUES (-1, 5)", "FLUSH BINARY LOGS")
    changes.start()
    changes.until(lambda: changes.table() == rows_of(mariadb, database))
    assert len(changes.rows) - base == 30_001


def test_a_transaction_larger_than_the_journal(db: Execute, changes: Any) -> None:
    """Its rows are removed from the journal before its place is stored."""
    db("CREATE TABLE t (id int PRIMARY KEY, s text)", "INSERT INTO t VALUES (0, '')")
    changes = changes(journal={"max_size": "1MiB"})
    changes.start()
    await_end_of_snapshot(changes, lambda: db("UPDATE t SET s = concat(s, 'x')"))
    base = len([changes.read(), *changes.rows][1:])
    db("INSERT INTO t SELECT seq, repeat('x', 1000) FROM seq_1_to_6000")

    def is_read() -> bool:
        changes.read()
        changes.source.commit(changes._offset)
        return len([row for row in changes.rows[base:] if row["_op"] == "i"]) == 6000

    changes.until(is_read, seconds=60)


TYPES = """
CREATE TABLE t (
  id bigint unsigned PRIMARY KEY, tiny tinyint, utiny tinyint unsigned, small smallint,
  usmall smallint unsigned, medium mediumint, umedium mediumint unsigned,
  uint int(10) unsigned zerofill, big bigint, flag tinyint(1), f float, d double, n decimal(30,10),
  small_n decimal(4,4), whole decimal(9,0), wide decimal(65,30), s varchar(20) CHARACTER SET latin1,
  long_s varchar(300), c char(4) CHARACTER SET ucs2, e enum('a', 'é', 'it''s') CHARACTER SET latin1,
  members set('x', 'ÿ') CHARACTER SET latin1, j json, body longtext, raw varbinary(20),
  fixed binary(3), data blob, place point, b1 bit(1), b9 bit(9), day date, at timestamp(6) NULL,
  wall datetime(3), wall0 datetime, wall6 datetime(6), t time(2), t0 time, t6 time(6), y year,
  twice int AS (small * 2) VIRTUAL, nopad varchar(9) COLLATE utf8mb4_nopad_bin, uid uuid,
  net4 inet4, net6 inet6
) CHARACTER SET utf8mb4
"""
NAMES = (
    "id, tiny, utiny, small, usmall, medium, umedium, uint, big, flag, f, d, n, small_n, whole, "
    "wide, s, long_s, c, e, members, j, body, raw, fixed, data, place, b1, b9, day, at, wall, "
    "wall0, wall6, t, t0, t6, y, nopad, uid, net4, net6"
)
VALUES = (
    "18446744073709551615, -128, 255, -32768, 65535, -8388608, 16777215, 42, "
    "-9223372036854775808, 1, 0.1, 1.7976931348623157e308, -12345678901234567890.0123456789, "
    "-0.0001, -999999999, 12345678901234567890123456789012345.000000000000000000000000000001, "
    "'é€', REPEAT('ü', 200), 'xé', 'é', 'x,ÿ', '{\"a\": 1.0}', '😀', X'00ff', X'010000', "
    "X'00ff80', point(1, -2), b'1', b'100000001', '2024-02-29', '2024-02-29 23:59:59.123456', "
    "'2024-02-29 23:59:59.123', '1000-01-01', '9999-12-31 23:59:59.999999', '-838:59:58.5', "
    "'-00:00:01', '00:00:00.000001', 1901, 'é ', '00112233-4455-1677-8899-aabbccddee00', "
    "'10.0.0.0', '2001:db8:0:0:1::'",
    "1, 127, 0, 32767, 0, 8388607, 0, 4294967295, 9223372036854775807, 0, -3.4e38, -2.5e-308, "
    "0.0000000001, 0.9999, 0, -1, '', '', '', 'it''s', '', '[]', '', '', '', '', NULL, b'0', "
    "b'000000000', '0001-01-01', '1970-01-01 00:00:01', '2024-01-01', '2024-01-01', "
    "'1969-12-31 23:59:59.5', '-00:00:00.01', '838:59:59', '-00:00:00.000001', 2155, '', "
    "'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF', '0.0.0.0', '::ffff:1.2.3.4'",
    f"2{', NULL' * 41}",
)


def test_types_of_changes_are_those_of_the_snapshot(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    insert = [f"INSERT INTO t ({NAMES}) VALUES ({values})" for values in VALUES]
    db(TYPES, *insert)
    changes = changes(tls={"ca": str(mariadb.ca)})
    changes.start()
    changes.until(lambda: len(changes.table()) == 3)
    of_snapshot = dict(changes.table())
    assert all(row["snapshot"] for row in changes.rows)
    db("DELETE FROM t", *insert)
    changes.until(lambda: len([changes.read(), *changes.rows][1:]) == 9)
    of_log = changes.table()
    _check_payloads(changes)
    assert not any(row["snapshot"] for row in changes.rows[3:])
    assert of_log == of_snapshot
    # And both are the rows that a query returns.
    options = {**mariadb.login, "table": f"{database}.t"}
    made = MysqlSource.create(MysqlSource.config_type.model_validate(options))
    assert isinstance(made, MysqlSource)
    made.columns = made.infer_schema()
    start = made.initial_offset()
    (part,) = made.partitions(start, made.latest_offset(start))
    rows = [row for batch in made.read(part, Read()) for row in batch.to_pylist()]
    assert {(row["id"],): row for row in rows} == of_log


def _check_payloads(changes: Changes) -> None:
    """Checks that the texts of the log are those of the server, except numbers of any form."""
    reader = changes.source._reader
    rows: dict[str, list[Row]] = {}
    for _, batch in reader.read(0, reader.end()):
        for payload in batch.column("payload").to_pylist():
            row = json.loads(payload)["row"]
            rows.setdefault(row["id"], []).append({**row, "f": None, "d": None})
    assert len(rows) == 3
    for of_snapshot, deleted, inserted in rows.values():
        assert of_snapshot == deleted == inserted


def test_addresses_and_their_keys(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    """The texts of the log are those of the server, of which keys consist."""
    rng = random.Random(3)
    words = [[rng.choice(("0", "0", "0", "ffff", "1", "a0b")) for _ in range(8)] for _ in range(99)]
    addresses = {*map(":".join, words), "::", "::1", "::1.2.3.4", "::ffff:1.2.3.4", "::ffff:0:0",
        "1::", "0:1:1:1:1:1:1:1", "1:1:1:1:1:1:1:0", "1:0:1:1:0:1:1:1"}  # fmt: skip
    db("CREATE TABLE t (net inet6, uid uuid, PRIMARY KEY (net, uid))")
    changes = changes()
    changes.start()
    insert = [f"('{each}', uuid())" for each in sorted(addresses)]
    db(f"INSERT INTO t VALUES {insert[0]}")
    key = ("net", "uid")
    changes.until(lambda: changes.table() == rows_of(mariadb, database, key=key) != {})
    db(f"INSERT IGNORE INTO t VALUES {', '.join(insert[1:])}")
    changes.until(lambda: changes.table() == rows_of(mariadb, database, key=key))
    assert not changes.rows[-1]["snapshot"]
    db("DELETE FROM t")
    changes.until(lambda: changes.table() == {})
    # The log that the server retains for the source grows while nothing reads it.
    changes.until(lambda: changes.source.retained() is not None)
    measure = changes.source._measured
    changes.until(lambda: measure([changes.source])[changes.source.directory].size < 1000)
    changes.stop()
    db(f"INSERT INTO t VALUES {insert[0]}", "FLUSH BINARY LOGS",
        f"INSERT IGNORE INTO t VALUES {', '.join(insert[1:])}")  # fmt: skip
    size = measure([changes.source])[changes.source.directory].size
    assert 3000 < size < 100_000


def test_values_beyond_their_type_are_dead_letters(db: Execute, changes: Any) -> None:
    db(
        "CREATE TABLE t (id int PRIMARY KEY, day date, at timestamp NULL, wall datetime, b bool, "
        "e enum('a'), y year)",
        "INSERT INTO t (id) VALUES (0)",
    )
    changes = changes()
    changes.start()
    changes.until(lambda: len(changes.table()) == 1)
    db(
        "SET sql_mode = ''",
        "INSERT INTO t VALUES (1, '0000-00-00', NULL, NULL, NULL, NULL, 0), (2, NULL, 0, NULL, "
        "NULL, 'b', 0), (3, NULL, NULL, '2024-00-10', NULL, NULL, 0), (4, NULL, NULL, NULL, 7, "
        "NULL, 0), (5, '2024-01-01', '2024-01-01', '0001-01-01', false, 'b', 0)",
    )
    found = Read()
    offset, rows = changes.source.initial_offset(), []

    def is_complete() -> bool:
        found.bad.clear()
        rows.clear()
        end = changes.source.latest_offset(offset)
        for part in changes.source.partitions(offset, end):
            rows.extend(r for b in changes.source.read(part, found) for r in b.to_pylist())
        return len(rows) + len(found.bad) == 6

    changes.until(is_complete)
    assert [row["id"] for row in rows] == [0, 5]
    assert rows[1]["e"] == "" and rows[1]["y"] == 0
    texts = [json.loads(bad.payload)["row"] for bad in found.bad]
    assert [row["id"] for row in texts] == ["1", "2", "3", "4"]
    assert texts[0]["day"] == "0000-00-00" and texts[1]["at"] == "0000-00-00 00:00:00"
    assert texts[2]["wall"] == "2024-00-10 00:00:00" and texts[3]["b"] == "7"
    reasons = [bad.error.message for bad in found.bad]
    for reason, name in zip(reasons, ("day", "at", "wall", "b"), strict=True):
        assert f'column "{name}"' in reason


def test_keys_and_values_that_are_not_sent(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    """A change of the key, a row image without columns, and columns that come and go."""
    db("CREATE TABLE t (a int, b varchar(9), big text, n int, PRIMARY KEY (b, a))",
        "INSERT INTO t VALUES (1, 'k', 'text', 1)")  # fmt: skip
    changes = changes()
    changes.start()
    key = ("b", "a")

    def same() -> bool:
        return bool(changes.table() == rows_of(mariadb, database, key=key))

    changes.until(same)
    db("UPDATE t SET a = 7")
    changes.until(same)
    assert [(row["_op"], row["a"]) for row in changes.rows[-2:]] == [("d", 1), ("i", 7)]
    db("SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE t SET n = 2")
    changes.until(same)
    assert [row["_op"] for row in changes.rows[-1:]] == ["u"] and changes.rows[-1]["big"] == "text"
    db("UPDATE t SET b = 'K'")
    changes.until(same)
    assert [(row["_op"], row["b"]) for row in changes.rows[-2:]] == [("d", "k"), ("i", "K")]
    db(
        "SET SESSION binlog_row_image = 'FULL'", "ALTER TABLE t DROP COLUMN big",
        "ALTER TABLE t ADD COLUMN more int FIRST", "INSERT INTO t VALUES (3, 8, 'k', 8)",
    )  # fmt: skip
    changes.until(lambda: len(changes.table()) == 2)
    assert changes.table()["k", 8] == {"a": 8, "b": "k", "big": None, "n": 8, "more": 3}
    db("DELETE FROM t")
    changes.until(lambda: changes.table() == {})


def test_columns_that_change(db: Execute, changes: Any, mariadb: MariaDb, database: str) -> None:
    """Rows after a change of the schema have all values, also if it comes between two runs."""
    db(
        "CREATE TABLE t (id int PRIMARY KEY, n smallint unsigned NOT NULL, old text, flag bool)",
        "INSERT INTO t SELECT seq, seq, 'old', 1 FROM seq_1_to_5",
    )
    changes = changes()
    changes.start()

    def same() -> bool:
        return bool(changes.table() == rows_of(mariadb, database))

    changes.until(lambda: len(changes.table()) == 5)
    db(
        "ALTER TABLE t ADD COLUMN added decimal(5, 2) AFTER id, ADD is_new bool",
        "INSERT INTO t VALUES (6, 1.25, 6, 'x', 0, 1)",
        "ALTER TABLE t MODIFY n bigint unsigned, ADD doc json, MODIFY added decimal(9, 4)",
        "INSERT INTO t VALUES (7, 12345.6789, 18446744073709551615, 'x', 0, 0, '{}')",
        "UPDATE t SET is_new = 1 WHERE id = 1",
    )
    changes.until(same)
    assert changes.table()[6,]["is_new"] is True and changes.table()[7,]["doc"] == "{}"
    assert changes.table()[7,]["n"] == 18446744073709551615
    changes.stop()
    db(
        "ALTER TABLE t DROP COLUMN old, RENAME COLUMN doc TO document",
        "INSERT INTO t VALUES (8, 1, 8, 1, 1, '[]')",
    )
    changes.start()
    changes.until(lambda: len(changes.table()) == 8)
    assert changes.table()[8,] == {
        "id": 8, "added": 1, "n": 8, "flag": True, "is_new": True, "document": "[]", "old": None,
        "doc": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "change", ["RENAME COLUMN id TO number", "DROP PRIMARY KEY, DROP COLUMN id"]
)
def test_keys_that_lose_a_column(db: Execute, changes: Any, change: str) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1)", "COMMIT")
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    db(f"ALTER TABLE t {change}", "UPDATE t SET n = 2", "COMMIT")
    error = fails(reader, 'has lost the column "id" of its primary key')
    assert error.code == "incompatible-schema"


def test_changes_of_types_without_a_common_type(db: Execute, changes: Any) -> None:
    """The error comes before the first row that does not fit; declared columns go on."""
    db("CREATE TABLE t (id int PRIMARY KEY, code text)", "INSERT INTO t VALUES (1, 1)")
    changes = changes()
    changes.start()
    changes.until(lambda: len(changes.table()) == 1)
    db("ALTER TABLE t MODIFY code int", "INSERT INTO t VALUES (2, 2)")
    error = fails(changes, "was STRING and is INT at bin.0")
    assert error.code == "incompatible-schema" and 'column "code"' in error.message
    assert len(changes.table()) == 1
    changes.source.follows_schema = False
    changes.start()
    changes.until(lambda: len(changes.table()) == 2)
    assert changes.table()[2,]["code"] == "2"


def test_random_changes_of_rows_and_columns(
    db: Execute, changes: Any, mariadb: MariaDb, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns are added and widened while rows change, and chunks are read again and again."""
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 1000)
    db("CREATE TABLE t (id int PRIMARY KEY, n smallint)",
        "INSERT INTO t SELECT seq, 0 FROM seq_1_to_8000")  # fmt: skip
    changes = changes()
    ended, altered = threading.Event(), threading.Event()
    rng = random.Random(3)

    def work() -> None:
        pauses = pauses_of_writer()
        with mariadb.client(database=database, autocommit=False) as client:
            execute, columns = executor(client), ["n"]
            while not ended.is_set():
                if altered.is_set():
                    altered.clear()
                    columns.append(f"c{len(columns)}")
                    type_ = ("int", "bigint", "decimal(30, 4)")[min(len(columns) - 2, 2)]
                    execute(f"ALTER TABLE t ADD COLUMN {columns[-1]} int FIRST, MODIFY n {type_}")
                key, name = rng.randrange(1, 9000), rng.choice(columns)
                value = rng.randrange(-32_000, 32_000)
                execute(
                    f"INSERT INTO t (id, {name}) VALUES ({key}, {value}) "
                    f"ON DUPLICATE KEY UPDATE {name} = {value}",
                    f"DELETE FROM t WHERE id BETWEEN {key + 1} AND {key + 2}",
                )
                client.rollback() if key % 9 == 0 else client.commit()
                time.sleep(next(pauses))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for part in (1000, 3000, 5000):
            changes.start()
            changes.until(lambda part=part: len([*changes.rows, *changes.read()]) > part)
            altered.set()
            changes.until(lambda: not altered.is_set())
            changes.stop()
        changes.start()
        count = len(changes.rows)
        changes.until(lambda: len([*changes.rows, *changes.read()]) > count + 500)
    finally:
        ended.set()
        worker.join()
    changes.until(lambda: changes.table() == rows_of(mariadb, database))
    assert {"c1", "c2", "c3"} < {*changes.source.columns.names}
    first = [row["id"] for row in changes.rows if row["snapshot"]]
    assert len(first) == len(set(first))


def test_tables_of_one_connection(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    """Tables are read by one process, which is killed; one is added later, one is read again."""
    for name in ("t", "u", "v"):
        db(f"CREATE TABLE {name} (id int PRIMARY KEY, n int)",
            f"INSERT INTO {name} SELECT seq, 0 FROM seq_1_to_3000")  # fmt: skip
    options = {"server_id": 4711, "process": True}
    first, second = changes("t", **options), changes("u", state="u", **options)
    first.others = [second]
    ended, rng = threading.Event(), random.Random(5)

    def work() -> None:
        pauses = pauses_of_writer()
        with mariadb.client(database=database, autocommit=False) as client:
            execute = executor(client)
            while not ended.is_set():
                key = rng.randrange(1, 3200)
                for name in sorted(rng.sample("tuv", 2)):
                    execute(
                        f"INSERT INTO {name} VALUES ({key}, 1) ON DUPLICATE KEY UPDATE n = n + 1",
                        f"DELETE FROM {name} WHERE id = {key + 5000}",
                    )
                client.rollback() if key % 9 == 0 else client.commit()
                time.sleep(next(pauses))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        first.start()
        first.until(lambda: len(second.table()) > 1000)
        first.kill()
        first.until(lambda: min(len(first.table()), len(second.table())) >= 3000)
        first.stop()
        # The log has statements about tables before they are read.
        db("CREATE TABLE w (id int PRIMARY KEY, n int)", "DROP TABLE w",
            "CREATE TABLE w LIKE t", "INSERT INTO w VALUES (1, 1)")  # fmt: skip
        added = [changes(name, state=f"new-{name}", **options) for name in ("v", "u", "w")]
        first.others = added
        first.start()
        first.until(lambda: len(added[0].table()) > 1000)
        first.kill()
        first.until(lambda: min(len(added[0].table()), len(added[1].table())) >= 3000)
        db("ALTER TABLE w ADD COLUMN more int", "INSERT INTO w VALUES (2, 2, 2)")
    finally:
        ended.set()
        worker.join()
    for table, name in zip((first, *added), "tvuw", strict=True):
        first.until(lambda t=table, n=name: t.table() == rows_of(mariadb, database, n))
        keys = [row["id"] for row in table.rows if row["snapshot"]]
        assert len(keys) == len(set(keys))
    db("DROP TABLE w")
    assert "was dropped" in fails(first, f'"{database}.w"').message


def test_names_of_tables_and_columns(db: Execute, mariadb: MariaDb, tmp_path: Path) -> None:
    """Names with quotes and dots; tables of the same name in other databases are not read."""
    name = 'my "odd" `t`.x %s é'
    quoted, column = name.replace("`", "``"), '`a "``b%`'
    first, second = mariadb.new_database(), mariadb.new_database()
    for each in (first, second):
        db(f"CREATE TABLE {each}.`{quoted}` ({column} int PRIMARY KEY, `select` text)")
    table = ".".join((first, '"' + name.replace('"', '""') + '"'))
    config = MysqlSource.config_type.model_validate(
        {**mariadb.login, "table": table, "changes": True}
    )
    changes = changes_of(MysqlSource, config, tmp_path, in_thread=True)
    changes.start()
    try:
        db(f"INSERT INTO {second}.`{quoted}` VALUES (9, 'other')")
        db(f"INSERT INTO {first}.`{quoted}` VALUES (1, 'one'), (2, 'two')")
        db(f"UPDATE {first}.`{quoted}` SET `select` = 'zwei' WHERE {column} = 2")
        expected = {(1,): "one", (2,): "zwei"}
        changes.until(lambda: {k: r["select"] for k, r in changes.table().items()} == expected)
    finally:
        changes.stop()


def test_tables_that_are_truncated_or_replaced(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id) "
        "(PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN MAXVALUE)",
        "INSERT INTO t VALUES (1), (7)")  # fmt: skip
    options = {"on_truncate": "ignore"}
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 2)
    db("CREATE TABLE other (id int PRIMARY KEY)", "TRUNCATE TABLE other", "DROP TABLE other",
        "ALTER TABLE t TRUNCATE PARTITION p")  # fmt: skip
    error = fails(reader, "was truncated at bin.0")
    assert error.code == "truncated" and "on_truncate: ignore" in str(error.hint)
    reader = changes(**options)
    reader.start()
    reader.until(lambda: (7,) in reader.table())
    db("TRUNCATE t", "INSERT INTO t VALUES (3)")
    reader.until(lambda: {(7,), (3,)} <= {*reader.table()})
    reader.stop()
    db("RENAME TABLE t TO u")
    with pytest.raises(PenstockError, match="there is no table"):
        changes(**options)
    assert fails(reader, "there is no table").code == "not-found"
    db("CREATE TABLE t (id int PRIMARY KEY)")
    error = fails(reader, "was dropped, replaced or renamed at bin.0")
    assert error.code == "not-found" and "Remove the state" in str(error.hint)


@pytest.mark.parametrize("on_truncate", ["fail", "ignore", "apply"])
def test_rows_that_are_exchanged_or_removed_as_duplicates(
    db: Execute, changes: Any, on_truncate: str
) -> None:
    """They are an error with each option: rows of the table that no change has are not ignored."""
    partitions = "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN MAXVALUE)"
    db(f"CREATE TABLE t (id int PRIMARY KEY, n int) {partitions}", "INSERT INTO t VALUES (1, 1)",
        "CREATE TABLE u (id int PRIMARY KEY, n int)",
        "INSERT INTO u VALUES (2, 2), (3, 2)")  # fmt: skip
    readers = [changes(name, name, on_truncate=on_truncate) for name in ("t", "u")]
    for reader, count in zip(readers, (1, 2), strict=True):
        reader.start()
        reader.until(lambda reader=reader, count=count: len(reader.table()) == count)
        await_end_of_snapshot(reader, lambda: db("CREATE TABLE IF NOT EXISTS other (id int)"))
    db("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u")
    for reader in readers:
        error = fails(reader, "were exchanged, imported or removed at bin.0")
        assert error.code == "binary-log" and "Remove the state" in str(error.hint)
    if on_truncate == "ignore":
        reader = changes("t", "again", on_truncate=on_truncate)
        reader.start()
        reader.until(lambda: len(reader.table()) == 2)
        db("ALTER IGNORE TABLE t ADD INDEX (n)", "DROP TABLE u")
        db("ALTER TABLE t REMOVE PARTITIONING", "ALTER IGNORE TABLE t ADD UNIQUE (n)")
        assert db("SELECT count(*) FROM t") == [(1,)]
        fails(reader, "were exchanged, imported or removed at bin.0")


@pytest.mark.parametrize("on_truncate", ["fail", "ignore", "apply"])
def test_tables_that_are_removed(db: Execute, changes: Any, on_truncate: str) -> None:
    """The removal of partitions is ignored or an error, that of a table always an error."""
    db("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id) "
        "(PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN (9))",
        "INSERT INTO t VALUES (1), (7)")  # fmt: skip
    reader = changes(on_truncate=on_truncate)
    reader.start()
    reader.until(lambda: len(reader.table()) == 2)
    db("ALTER TABLE t DROP PARTITION p")
    if on_truncate == "ignore":
        db("INSERT INTO t VALUES (8)")
        reader.until(lambda: {*reader.table()} == {(1,), (7,), (8,)})
        db("DROP TABLE t")
        assert fails(reader, "was dropped, replaced or renamed").code == "not-found"
    else:
        error = fails(reader, "a partition of the table")
        assert error.code == "truncated" and "Set on_truncate: ignore" in str(error.hint)


def test_changes_that_the_log_does_not_have(db: Execute, changes: Any) -> None:
    """Statements and transactions of XA are errors, not losses."""
    db("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    db("SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO t VALUES (2)",
        "SET SESSION binlog_format = 'ROW'")  # fmt: skip
    error = fails(reader, "another binlog_format than ROW")
    assert error.code == "binary-log"
    second = changes(state="second")
    second.start()
    second.until(lambda: len(second.table()) == 2)
    db("XA START 'x'", "INSERT INTO t VALUES (3)", "XA END 'x'", "XA COMMIT 'x' ONE PHASE")
    second.until(lambda: len(second.table()) == 3)
    db("XA START 'x'", "INSERT INTO t VALUES (4)", "XA END 'x'", "XA PREPARE 'x'",
        "XA ROLLBACK 'x'")  # fmt: skip
    assert "XA" in fails(second, "by a transaction of XA").message


def test_logs_that_are_gone(tmp_path: Path) -> None:
    """A purged log, and one that was reset, are errors, after which `on_data_loss` goes on."""
    with MariaDb() as server, server.client() as client:
        db = executor(client)
        db("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")

        def create(state: str, **options: Any) -> Changes:
            config = MysqlSource.config_type.model_validate(
                {**server.login, "table": "t", "changes": True, **options}
            )
            return changes_of(MysqlSource, config, tmp_path / state, in_thread=True)

        def read(state: str) -> Changes:
            reader = create(state)
            reader.start()
            reader.until(lambda: len(reader.table()) == 1)
            db("CREATE TABLE IF NOT EXISTS u (id int)", "INSERT INTO u VALUES (1)")
            stored = reader.source.directory / "confirmed"
            text = stored.read_text()
            reader.until(lambda: stored.read_text() != text)
            reader.stop()
            return reader

        reset = read("reset")
        time.sleep(1)
        db("RESET MASTER", "INSERT INTO u SELECT seq FROM seq_1_to_1000")
        error = fails(reset, "is not the one that was read before")
        assert error.code == "data-gone" and "log was reset" in str(error.hint)
        purged = read("purged")
        db("FLUSH BINARY LOGS")
        ((last, *_),) = db("SHOW MASTER STATUS")
        deadline = time.monotonic() + 20
        while len(db("SHOW BINARY LOGS")) > 1:
            assert time.monotonic() < deadline
            db(f"PURGE BINARY LOGS TO '{last}'")
        error = fails(purged, "changes since the last run are lost")
        assert error.code == "data-gone" and "binlog_expire_logs_seconds" in str(error.hint)
        db("INSERT INTO t VALUES (2)")
        for state, policy, known in (
            ("reset", "snapshot", [1, 1, 2]), ("purged", "continue", [1, 2]),
        ):  # fmt: skip
            again = create(state, on_data_loss=policy)
            again.start()
            assert [row["id"] for row in again.await_loss(len(known))] == known
            again.stop()


class Replica(MariaDb):
    """A replica, whose log has other names of files."""

    settings = {"server-id": "2", "log-bin": "other", "log-slave-updates": "ON"}

    def follow(self, primary: MariaDb, position: str) -> None:
        """Replicates after a position of the primary, with a log that has nothing else."""
        with self.client() as client:
            executor(client)(
                f"SET GLOBAL gtid_slave_pos = '{position}'",
                "RESET MASTER",
                f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, "
                f"MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos",
                "START SLAVE",
            )

    def promote(self, position: str) -> None:
        """Ends the replication once it has reached a position."""
        with self.client() as client:
            execute = executor(client)
            deadline = time.monotonic() + 180
            while execute(f"SELECT MASTER_GTID_WAIT('{position}', 5)") != [(0,)]:
                assert time.monotonic() < deadline, execute("SHOW SLAVE STATUS")
            execute("STOP SLAVE", "RESET SLAVE ALL")


def follow_with_rows(replica: Replica, primary: MariaDb, database: str, *names: str) -> None:
    """Replicates tables that have the row 1 on both servers."""
    with primary.client() as client:
        ((position,),) = executor(client)("SELECT @@gtid_binlog_pos")
    with replica.client() as client:
        execute = executor(client)
        execute(f"CREATE DATABASE {database}", f"USE {database}")
        for name in names:
            execute(f"CREATE TABLE {name} (id int PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)")
        replica.follow(primary, position)


def test_another_server_by_gtids(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    """A failover neither loses nor repeats a change, also of those that were not confirmed."""
    names = ("t", "u")
    for name in names:
        db(f"CREATE TABLE {name} (id int PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)")
    with Replica() as replica:
        follow_with_rows(replica, mariadb, database, *names)
        with replica.client(database=database) as client:
            of_replica = executor(client)

            def pair(**options: Any) -> list[Changes]:
                options = {"server_id": 4712, **options}
                made = [changes(name, state=f"of-{name}", **options) for name in names]
                made[0].others = made[1:]
                return made

            def ids(readers: list[Changes]) -> list[list[tuple[str, int]]]:
                return [[(r["_op"], r["id"]) for r in each.read_again()[0]] for each in readers]

            expected = [[("i", 1)], [("i", 1)]]
            readers = pair(process=True)
            readers[0].start()
            files = [each.source.directory / "confirmed" for each in readers]

            def add(execute: Execute, id_: int) -> None:
                """Inserts into both tables in one transaction."""
                inserts = [f"INSERT INTO {name} VALUES ({id_})" for name in names]
                execute("START TRANSACTION", *inserts, "COMMIT")
                for rows in expected:
                    rows.append(("i", id_))

            def reached() -> bool:
                return ids(readers) == expected

            readers[0].until(reached)
            add(db, 2)
            readers[0].until(lambda: reached() and all("gtids" in f.read_text() for f in files))
            readers[0].until(lambda: files[0].read_text() == files[1].read_text())
            readers[0].stop()
            confirmed = [each.read_text() for each in files]
            # A state of an earlier version is a file and a position.
            number, text, _ = json.loads(confirmed[0])
            place = json.loads(text)
            assert place["gtids"] and place["server"] == 1
            earlier = json.dumps([number, f"1:{place['created']}:{place['name']}"])
            for file in files:
                file.write_text(earlier)
            add(db, 3)
            readers[0].start()
            readers[0].until(lambda: reached() and all(f.read_text() != earlier for f in files))
            readers[0].until(lambda: all("gtids" in f.read_text() for f in files))
            readers[0].stop()
            # The journals have changes after the stored place, as after a crash.
            confirmed = [each.read_text() for each in files]
            add(db, 4)
            add(db, 5)
            readers[0].start()
            readers[0].until(reached)
            readers[0].stop()
            for file, content in zip(files, confirmed, strict=True):
                file.write_text(content)
            add(db, 6)
            ((position,),) = db("SELECT @@gtid_binlog_pos")
            replica.promote(position)
            add(of_replica, 7)
            readers = pair(url=replica.login["url"].rpartition("/")[0] + f"/{database}",
                process=True)  # fmt: skip
            for id_ in (8, 9):
                readers[0].start()
                readers[0].until(reached)
                readers[0].stop()
                add(of_replica, id_)
            readers[0].start()
            readers[0].until(lambda: reached() and all("other.0" in f.read_text() for f in files))
            readers[0].stop()
    # The first server does not have the changes of its replica.
    first = changes(state="of-t", server_id=4712)
    assert fails(first, "does not have all transactions that were read").code == "data-gone"
    again = changes(state="of-t", server_id=4712, on_data_loss="snapshot")
    again.start()
    again.until(lambda: [row["id"] for row in again.read_again()[0]][-6:] == [1, 2, 3, 4, 5, 6])


def test_several_servers_that_write_to_one_domain(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    """After a failover numbers of GTIDs are not in the order of the log, and occur twice.

    A change with a smaller number is read. Changes that only the journal has are an error.
    """
    db("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    known = [1]

    def read(state: str, url: str) -> Changes:
        reader: Changes = changes(state=state, url=url)
        reader.start()
        reader.until(lambda: [row["id"] for row in reader.read_again()[0]] == known)
        return reader

    def add(execute: Execute, id_: int, *before: str) -> None:
        execute(*before, f"INSERT INTO t VALUES ({id_})")
        known.append(id_)

    def read_without_confirming(state: str, id_: int) -> None:
        """Reads a change that is in the journal after the stored place, as after a crash."""
        reader = read(state, mariadb.login["url"])
        file = reader.source.directory / "confirmed"
        reader.until(lambda: "gtids" in file.read_text() and known[-1] != 1)
        reader.stop()
        confirmed = file.read_text()
        add(db, id_)
        read(state, mariadb.login["url"]).stop()
        file.write_text(confirmed)

    with Replica() as replica:
        follow_with_rows(replica, mariadb, database, "t")
        add(db, 2)
        read_without_confirming("smaller", 3)
        add(db, 4, "SET SESSION server_id = 7", "SET SESSION gtid_seq_no = 1")
        db("SET SESSION server_id = 1", "SET SESSION gtid_seq_no = 0")
        with replica.client(database=database) as client:
            of_replica = executor(client)
            deadline = time.monotonic() + 60
            while of_replica("SELECT id FROM t WHERE id = 4") == ():
                assert time.monotonic() < deadline
            replica.promote("0-7-1")
            read_without_confirming("diverged", 5)
            known.pop()
            add(of_replica, 6)
            add(of_replica, 7)
            url = replica.login["url"].rpartition("/")[0] + f"/{database}"
            read("smaller", url).stop()
            diverged = changes(state="diverged", url=url)
            error = fails(diverged, "does not have all transactions that were read")
            assert error.code == "data-gone"


def test_discovered_tables(
    db: Execute, mariadb: MariaDb, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY, body text)", "CREATE TABLE keyless (x int)")
    url, auth = mariadb.login["url"], mariadb.login["auth"]
    login = [f"auth.{name}={value}" for name, value in auth.items()]
    words = ["discover", "mysql", "--url", url, *(f"--set={text}" for text in login)]
    assert main([*words, "--json", f"{database}.t", f"{database}.keyless"]) == 0
    with_changes, without = json.loads(capsys.readouterr().out)
    assert with_changes["changes"] and with_changes["primary_key"] == ["id"]
    assert not without["changes"] and "ADD PRIMARY KEY" in without["errors"][0]["hint"]
    assert main([*words, f"{database}.t", f"{database}.keyless"]) == 0
    text = capsys.readouterr().out
    assert f"# {database}.keyless: the changes cannot be read: the table" in text
    assert text.count("changes: true") == 1 and PASSWORD not in text


def test_requirements_of_the_server(tmp_path: Path) -> None:
    """Each setting that is wrong is an error with its statement."""
    wrong = {
        "binlog_format": "MIXED", "binlog_row_image": "MINIMAL", "binlog_row_metadata": "NO_LOG",
        "log_bin_compress": "ON",
    }  # fmt: skip

    class Wrong(MariaDb):
        settings = {
            "binlog-do-db": "other", **{name.replace("_", "-"): v for name, v in wrong.items()}
        }  # fmt: skip

    class WithoutLog(MariaDb):
        def command(self) -> Sequence[str]:
            return [text for text in super().command() if not text.startswith("--log-bin")]

    with WithoutLog() as server:
        config = MysqlSource.config_type.model_validate(
            {**server.login, "table": "t", "changes": True}
        )
        with server.client() as client:
            executor(client)("CREATE TABLE t (id int PRIMARY KEY)")
        with pytest.raises(PenstockError, match="has no binary log; changes need log_bin"):
            changes_of(MysqlSource, config, tmp_path)
    with Wrong() as server, server.client() as client:
        db = executor(client)
        db("CREATE TABLE t (id int PRIMARY KEY)")
        config = MysqlSource.config_type.model_validate(
            {**server.login, "table": "t", "changes": True}
        )
        for name, value in wrong.items():
            with pytest.raises(PenstockError, match=f"has {name} {value}; changes need") as error:
                changes_of(MysqlSource, config, tmp_path)
            assert error.value.code == "binary-log" and error.value.hint is not None
            statement = error.value.hint.removeprefix("Run ").partition(", and set it")[0]
            assert statement.startswith(f"SET GLOBAL {name} = ")
            db(statement)
        with pytest.raises(PenstockError, match=f'leaves out the database "{DATABASE}"'):
            changes_of(MysqlSource, config, tmp_path)


def test_requirements_of_tables_and_users(
    db: Execute, changes: Any, mariadb: MariaDb, database: str
) -> None:
    db(
        "CREATE TABLE keyless (id int)", "CREATE VIEW v AS SELECT * FROM keyless",
        "CREATE TABLE aria (id int PRIMARY KEY) ENGINE=Aria",
        "CREATE TABLE by_enum (id enum('b', 'a') PRIMARY KEY)",
        "CREATE TABLE other_types (id int PRIMARY KEY, u varchar(9) COMPRESSED)",
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (id int PRIMARY KEY, p int, CONSTRAINT `fk 1` FOREIGN KEY (p) "
        "REFERENCES parent (id) ON DELETE CASCADE)", "CREATE TABLE t (id int PRIMARY KEY)",
    )  # fmt: skip
    for table, text, hint in (
        ("keyless", "has no primary key", f"ALTER TABLE `{database}`.`keyless` ADD PRIMARY KEY"),
        ("v", "is no table", "Set table"),
        ("aria", "has the engine Aria", f"ALTER TABLE `{database}`.`aria` ENGINE=InnoDB"),
        ("by_enum", "rows are not read in its order", "Set primary_key"),
        ("other_types", 'column "u" of the type varchar', "MODIFY `u`"),
        ("child", "deletes or updates rows", f"`{database}`.`child` DROP FOREIGN KEY `fk 1`"),
    ):
        with pytest.raises(PenstockError, match=text) as error:
            changes(table)
        assert hint in str(error.value.hint), error.value.hint
    with pytest.raises(OptionError, match="there is no table"):
        changes("tt")
    db(f"CREATE USER {database}@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT SELECT ON {database}.* TO {database}@'%'")  # fmt: skip
    login = {
        "url": f"mysql://127.0.0.1:{mariadb.port}/{database}",
        "auth": {"username": database, "password": PASSWORD},
    }
    with pytest.raises(PenstockError, match="may not read the binary log") as denied:
        changes(**login)
    statement = f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{database}'@'%'"
    assert denied.value.hint == f"Run {statement}."
    db(statement, "INSERT INTO t VALUES (1)")
    reader = changes(**login)
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    db("INSERT INTO t VALUES (2)")
    reader.until(lambda: len(reader.table()) == 2)


def test_a_server_that_restarts(tmp_path: Path) -> None:
    """A kill of the server neither loses nor repeats a change."""
    with MariaDb() as server:
        config = MysqlSource.config_type.model_validate(
            {**server.login, "table": "t", "changes": True}
        )
        with server.client() as client:
            executor(client)("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY)")
        changes = changes_of(MysqlSource, config, tmp_path, in_thread=True)
        changes.start()
        try:
            with server.client() as client:
                insert = partial(executor(client), "INSERT INTO t VALUES ()")
                await_end_of_snapshot(changes, insert)
            for total in (300, 600):
                with server.client() as client:
                    executor(client)(*["INSERT INTO t VALUES ()"] * 300)
                if total == 300:
                    changes.until(lambda: len(changes.table()) > 100)
                    server.kill()
                    server.start()
            with server.client() as client:
                ((count,),) = executor(client)("SELECT count(*) FROM t")
            changes.until(lambda: len(changes.table()) == count)
            for of_snapshot in (False, True):
                ids = [row["id"] for row in changes.rows if row["snapshot"] is of_snapshot]
                assert len(ids) == len({*ids}) and (of_snapshot or len(ids) >= 600)
        finally:
            changes.stop()


def test_a_receiver_stops_while_the_server_does_not_respond(
    db: Execute, changes: Any, mariadb: MariaDb
) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    reader = changes(timeout="5m")
    reader.start()
    reader.until(lambda: len(reader.table()) == 1)
    mariadb.pause()
    try:
        reader.stop()
        assert "binlog" not in {thread.name for thread in threading.enumerate()}
    finally:
        mariadb.resume()


def test_interrupted_connections(
    db: Execute, mariadb: MariaDb, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MysqlConnection, "silence", 0.2)
    db("CREATE TABLE t (id int PRIMARY KEY)")
    with Gate(mariadb.port) as gate:
        options = Interruptions(gate, PASSWORD).through(
            mariadb.login, table=f"{database}.t", changes=True, timeout="1s"
        )
        config = MysqlSource.config_type.model_validate(options)
        changes = changes_of(MysqlSource, config, tmp_path, in_thread=True)
        check_interrupted(changes, gate, lambda id_: db(f"INSERT INTO t VALUES ({id_})"))


def test_declared_columns_that_the_table_lacks(db: Execute, changes: Any) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY, name varchar(9))", "INSERT INTO t VALUES (1, 'a')")
    check_declared_columns(changes())
