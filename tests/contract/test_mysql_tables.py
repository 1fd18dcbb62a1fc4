"""Tables of MariaDB, written and read without Spark."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from crossing import by_hand, hostile, native, native_tables, systems
from crossing.hostile import quoted
from database_tables import read, write
from interruptions import Interruptions, check_table
from penstock.connectors.jdbc import JdbcSink
from penstock.connectors.mysql import MysqlSink, MysqlSource
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.writing import WritingConnection
from penstock.core.errors import OptionError, Permanent, PlanError, Rejected, Transient
from penstock.sdk import BatchId, Read, compare_schemas
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.rows import batch_of
from servers.drivers import MARIADB, MYSQL, driver
from servers.gate import Gate
from servers.mariadb import DATABASE, PASSWORD, MariaDb

UTC = pa.timestamp("us", tz="UTC")
LOCAL = pa.timestamp("us")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
WALL = NOW.replace(tzinfo=None)


@pytest.fixture
def options(mariadb: MariaDb) -> dict[str, Any]:
    return {**mariadb.login, "table": f"{mariadb.new_database()}.t"}


class Client:
    """A client whose tables are those of the database of the test."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __call__(self, *statements: str) -> list[tuple[Any, ...]]:
        """Executes statements. Returns the rows of the last one."""
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


@pytest.fixture
def db(mariadb: MariaDb, options: dict[str, Any]) -> Iterator[Client]:
    with mariadb.client(database=options["table"].partition(".")[0]) as connection:
        yield Client(connection)


def sink(options: dict[str, Any], key: Sequence[str] = (), **more: Any) -> MysqlSink:
    made = MysqlSink.create(MysqlSink.config_type.model_validate({**options, **more}))
    assert isinstance(made, MysqlSink)
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def source(options: dict[str, Any], **more: Any) -> MysqlSource:
    options = {name: value for name, value in options.items() if name not in more.get("drop", ())}
    more.pop("drop", None)
    made = MysqlSource.create(MysqlSource.config_type.model_validate({**options, **more}))
    assert isinstance(made, MysqlSource)
    made.columns = made.infer_schema()
    return made


TYPES = """
CREATE TABLE t (
  id bigint unsigned PRIMARY KEY AUTO_INCREMENT, tiny tinyint, utiny tinyint unsigned,
  usmall smallint unsigned, medium mediumint, uint int(10) unsigned zerofill, flag tinyint(1),
  f float, d double, n decimal(30,10), wide decimal(65,0), s varchar(20) CHARACTER SET latin1,
  c char(4), e enum('a', 'it''s'), members set('x', 'y'), j json, raw varbinary(20),
  fixed binary(3), b1 bit(1), b9 bit(9), day date, at timestamp(6) NULL, wall datetime(3),
  t time(2), y year
)
"""
ROW = """
INSERT INTO t VALUES (18446744073709551615, -128, 255, 65535, -8388608, 4294967295, 1,
  16777217, 1.7976931348623157e308, 12345678901234567890.0123456789, REPEAT('9', 65), 'é', 'ab',
  'it''s', 'x,y', '{"a": 1.0}', X'00ff', X'010203', b'1', b'100000001', '2024-02-29',
  '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59.123', '-838:59:58.5', 1901)
"""


def test_types_are_read_without_loss(options: dict[str, Any], db: Client) -> None:
    db(TYPES, ROW, "INSERT INTO t (id, f) VALUES (2, 0.1)", "UPDATE t SET at = NULL WHERE id = 2")
    of = source(options)
    rows, errors, _ = read(of)
    assert errors == []
    nulls, row = rows
    assert row == {
        "id": Decimal(2**64 - 1), "tiny": -128, "utiny": 255, "usmall": 65535, "medium": -(2**23),
        "uint": 2**32 - 1, "flag": True, "f": 16777216.0, "d": 1.7976931348623157e308,
        "n": Decimal("12345678901234567890.0123456789"), "wide": "9" * 65, "s": "é", "c": "ab",
        "e": "it's", "members": "x,y", "j": '{"a": 1.0}', "raw": b"\x00\xff",
        "fixed": b"\x01\x02\x03", "b1": True, "b9": b"\x01\x01", "day": NOW.date(), "at": NOW,
        "wall": WALL.replace(microsecond=123000), "t": "-838:59:58.50", "y": 1901,
    }  # fmt: skip
    assert pa.scalar(nulls.pop("f"), pa.float32()) == pa.scalar(0.1, pa.float32())
    assert set(nulls.values()) == {2, None}
    by_query = source(options, drop=["table"], query="SELECT * FROM " + options["table"])
    assert of.columns is not None and by_query.columns is not None
    types, others = ({f.name: f.type for f in each.columns} for each in (of, by_query))
    assert types == others and types["at"] == UTC and types["wall"] == LOCAL
    found = sorted(read(by_query)[0], key=lambda each: each["id"])
    assert found[1] == row and found[0].pop("f") and found[0] == nulls


def test_values_beyond_their_type_are_dead_letters(options: dict[str, Any], db: Client) -> None:
    db(
        "CREATE TABLE t (id int PRIMARY KEY, day date, at timestamp NULL, wall datetime, b bool)",
        "SET sql_mode = ''",
        "INSERT INTO t VALUES (1, '0000-00-00', NULL, NULL, NULL), (2, NULL, 0, NULL, NULL), "
        "(3, NULL, NULL, '2024-00-10', NULL), (4, NULL, NULL, NULL, 7), (5, '2024-01-01', "
        "'2024-01-01', '0001-01-01', false)",
    )
    rows, errors, _ = read(source(options))
    assert [row["id"] for row in rows] == [5]
    assert errors == [
        'column "day": "0000-00-00" (STRING) is not a DATE',
        'column "at": "0000-00-00 00:00:00" (STRING) is not a TIMESTAMP',
        'column "wall": "2024-00-10 00:00:00" (STRING) is not a TIMESTAMP_NTZ',
        'column "b": "7" (STRING) is not a BOOLEAN',
    ]


def test_types_are_written_without_loss(options: dict[str, Any], db: Client) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("d", pa.float64()), ("f", pa.float32()),
            ("n", pa.decimal128(38, 18)), ("s", pa.string()), ("raw", pa.binary()),
            ("at", UTC), ("local", LOCAL), ("day", pa.date32()), ("flag", pa.bool_()),
            ("texts", pa.list_(pa.string())), ("deep", pa.list_(pa.list_(pa.int32()))),
            ("where", pa.struct([("city", pa.string()), ("at", UTC)])),
            ("tags", pa.map_(pa.string(), pa.decimal128(10, 2))),
            json_field(pa.field("j", pa.string())),
        ]
    )  # fmt: skip
    row = {
        "id": -(2**63), "d": 5e-324, "f": 0.1,
        "n": Decimal("12345678901234567890.000000000000000001"),
        "s": "\\N\\'\t\r\n\"'%s{}\0\x1a😀 ", "raw": b"\\x\x00'", "at": NOW, "local": WALL,
        "day": dt.date(1, 1, 1), "flag": False, "texts": ["", None, 'NULL "\\{},'],
        "deep": [[1], [], [2, 3]], "where": {"city": "Bern \"'", "at": NOW},
        "tags": [("a", Decimal("1.50"))], "j": {"k": [1.5, "x"]},
    }  # fmt: skip
    small = {**dict.fromkeys(row), "id": 0, "n": Decimal("1E-18"), "at": dt.datetime(1900, 1, 1)}
    assert write(sink(options), batch_of([row, small], schema)) == {}
    of = source(options)
    of.columns = schema
    rows, errors, _ = read(of)
    assert errors == []
    by_id = {found["id"]: found for found in rows}
    f = by_id[row["id"]].pop("f")
    assert pa.scalar(f, pa.float32()) == pa.scalar(0.1, pa.float32())
    expected = {**row, "j": '{"k": [1.5, "x"]}'}
    del expected["f"]
    assert by_id[row["id"]] == expected
    assert by_id[0] == {**small, "at": dt.datetime(1900, 1, 1, tzinfo=dt.UTC)}
    assert source(options).columns.field("j").metadata  # type: ignore[union-attr]


def test_rejected_rows_are_found_among_the_others(options: dict[str, Any], db: Client) -> None:
    db(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE t (id int PRIMARY KEY, name varchar(3) NOT NULL CHECK (name <> 'bad'), "
        "parent int REFERENCES parent (id), wall datetime(0), j json, u int unsigned, d double, "
        "UNIQUE (name)) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        "CREATE TRIGGER checked BEFORE INSERT ON t FOR EACH ROW IF NEW.id = 209 THEN "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no 209'; END IF",
    )
    columns = pa.schema(
        [("id", pa.int32()), ("name", pa.string()), ("parent", pa.int32()), ("wall", UTC),
         json_field(pa.field("j", pa.string())), ("u", pa.int64()), ("d", pa.float64())]
    )  # fmt: skip
    good = [{"id": n, "name": f"{n}"} for n in range(100)]
    bad = [
        {"id": 200, "name": None}, {"id": 201, "name": "bad"}, {"id": 202, "name": "long"},
        {"id": 203, "name": "p", "parent": 7}, {"id": 204, "name": "abc "}, {"id": 1, "name": "x"},
        {"id": 205, "name": "t", "wall": NOW}, {"id": 206, "name": "u", "u": -1},
        {"id": 207, "name": "7"}, {"id": 208, "name": "n", "d": float("nan")},
        {"id": 209, "name": "s"},
    ]  # fmt: skip
    failures = write(sink(options), batch_of(good[:50] + bad + good[50:], columns))
    assert sorted(failures) == [*range(50, 61)]
    words = [
        "cannot be null", "CONSTRAINT", "too long", "foreign key", "truncated", "Duplicate entry",
        "0 digits of a fraction", "Out of range", "Duplicate entry", "NaN", "no 209",
    ]  # fmt: skip
    assert [word in text for word, text in zip(words, failures.values(), strict=True)] == (
        [True] * 11
    ), failures
    assert db("SELECT count(*) FROM t") == [(100,)]


@pytest.mark.parametrize("bad", [[], [70, 200, 321, 400, 500, 600, 700], [70, 900]])
def test_many_rows_are_loaded_as_they_are_inserted(
    options: dict[str, Any], db: Client, bad: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is written by LOAD DATA and by INSERT, with the same rows and dead letters."""
    columns = pa.schema(
        [("id", pa.int32()), ("name", pa.string()), ("parent", pa.int32()), ("wall", LOCAL),
         ("u", pa.int64()), ("d", pa.float64()), ("price", pa.decimal128(9, 4)),
         ("day", pa.date32()), ("flag", pa.bool_())]
    )  # fmt: skip
    names = ["\\", "\\N", "\t", "\n", "\\t", "a\r\n", "\0", "'\"", " x ", "", "é\U0001f600", "NULL"]
    rows: list[dict[str, Any]] = [
        {"id": n, "name": f"{n}{names[n % len(names)]}", "u": n * 2**21 if n else None,
         "wall": dt.datetime(1 + n * 7, 1, 2, 3, 4, 5, 678000),
         "d": n / 7 * 10.0 ** (n % 600 - 300),
         "price": Decimal(n).scaleb(-2), "day": dt.date(9999 - n, 2, 3), "flag": n % 3 == 0}
        for n in range(1100)
    ]  # fmt: skip
    changes: dict[int, dict[str, Any]] = {
        70: {"name": None}, 200: {"name": "bad"}, 321: {"name": "much too long for it"},
        400: {"parent": 7}, 500: {"id": 1}, 600: {"u": -1}, 700: {"price": Decimal("1.234")},
        900: {"id": 2000},
    }  # fmt: skip
    for number in bad:
        rows[number] |= changes[number]
    found = {}
    for number, (name, least) in enumerate((("loaded", 1000), ("inserted", 10**6))):
        monkeypatch.setattr("penstock.connectors.mysql.loading.MIN_ROWS", least)
        db(
            "CREATE TABLE IF NOT EXISTS parent (id int PRIMARY KEY)",
            f"CREATE TABLE {name} (id int PRIMARY KEY, parent int REFERENCES parent (id), "
            "name varchar(16) NOT NULL CHECK (name <> 'bad'), wall datetime(3), u int unsigned, "
            "d double, price decimal(6,2), day date, flag tinyint(1)) "
            "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            f"CREATE TRIGGER {name} BEFORE INSERT ON {name} FOR EACH ROW IF NEW.id = 2000 THEN "
            "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no 2000'; END IF",
        )
        ((_, before),) = db("SHOW GLOBAL STATUS LIKE 'Com_load'")
        table = options["table"].replace(".t", f".{name}")
        failures = write(sink({**options, "table": table}), batch_of(rows, columns), number)
        ((_, after),) = db("SHOW GLOBAL STATUS LIKE 'Com_load'")
        assert (int(after) > int(before)) == (name == "loaded")
        stored = db(f"SELECT * FROM {name} ORDER BY id")
        assert len(stored) == len(rows) - len(failures)
        found[name] = stored, sorted(failures), [text.split("`")[0] for text in failures.values()]
    assert found["loaded"] == found["inserted"]
    assert found["loaded"][1] == bad


def test_rows_are_inserted_after_the_server_has_rejected_loading(
    options: dict[str, Any], db: Client, mariadb: MariaDb
) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY)")
    rows = pa.record_batch([pa.array(range(1000), pa.int32())], names=["id"])
    of = sink(options)
    of.prepare(rows.schema)
    with closing(of.open()) as client, mariadb.client(user="root", password="") as root:
        cursor = root.cursor()
        cursor.execute("SET GLOBAL local_infile = 0")
        try:
            writer = of.writer(client, BatchId("q", 0), 0, rows.schema)
            assert not writer.write(rows)
            writer.commit()
        finally:
            cursor.execute("SET GLOBAL local_infile = 1")
    assert db("SELECT count(*) FROM t") == [(1000,)]


def test_values_that_the_server_would_change_are_rejected(
    options: dict[str, Any], db: Client
) -> None:
    db(
        "CREATE TABLE t (wide decimal(65,2), tm time(1), c char(4), e enum('a', '7'), y year, "
        "fixed binary(2), wall datetime(3))"
    )
    bad: list[tuple[str, pa.DataType, Any]] = [
        ("wide", pa.string(), "1.239"), ("tm", pa.string(), "10:11:12.55"),
        ("c", pa.string(), "ab "), ("e", pa.string(), "1"), ("y", pa.int16(), 24),
        ("fixed", pa.binary(), b"1"), ("wall", LOCAL, WALL),
        ("wall", LOCAL, dt.datetime(2024, 1, 1, 0, 0, 0, 1)),
    ]  # fmt: skip
    for number, (name, type_, value) in enumerate(bad):
        rows = batch_of([{name: value}], pa.schema([(name, type_)]))
        assert [*write(sink(options), rows, number)] == [0], name
    good = {"wide": "1.230", "tm": "10:11:12.50", "c": " ab", "e": "7", "y": 2024, "fixed": b"12"}
    schema = pa.schema([(name, type_) for name, type_, _ in bad[:6]])
    assert write(sink(options), batch_of([good], schema), 100) == {}
    assert db("SELECT wide, c, e, y, fixed FROM t") == [(Decimal("1.23"), " ab", "7", 2024, b"12")]


def test_upserts_and_deletes_of_composite_keys(options: dict[str, Any], db: Client) -> None:
    columns = pa.schema([("a", pa.int32()), ("select", pa.string()), ("n", pa.int64())])
    of = sink(options, ["a", "select"])
    rows = [{"a": n % 3, "select": f"{n}%s", "n": n} for n in range(9)]
    assert write(of, batch_of(rows, columns)) == {}
    changes = [
        {"a": 0, "select": "0%s", "n": 50}, {"a": 1, "select": "1%s"}, {"a": None},
        {"a": 1, "select": "4%S", "n": 1}, {"a": 1, "select": "4%s ", "n": 2},
        {"a": 1, "select": "x" * 256},
    ]  # fmt: skip
    operations = pa.array(["u", "d", "u", "u", "u", "u"])
    failures = write(of, batch_of(changes, columns), 1, operations)
    assert failures.pop(2) == "expected a value in the primary key, found null in a, select"
    assert "too long" in failures.pop(5) and failures == {}
    # The batch is committed, so it is not written again.
    assert write(of, batch_of(rows, columns), 1) == {}
    assert db("SELECT count(*), max(n), sum(`select` = '1%s') FROM t") == [(10, 50, 0)]
    keys = batch_of([{"a": n % 3, "select": f"{n}%s"} for n in range(3000)], columns)
    assert write(of, keys, 2, pa.array(["d"] * 3000)) == {}
    assert db("SELECT count(*) FROM t") == [(2,)]


def test_rows_whose_key_the_table_has(options: dict[str, Any], db: Client) -> None:
    columns = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    assert write(sink(options, ["id"]), batch_of([{"id": 1, "v": 5}], columns)) == {}
    later = batch_of([{"id": 1, "v": 4}, {"id": 2, "v": 6}], columns)
    assert write(sink(options, ["id"], on_conflict="nothing"), later, 1) == {}
    assert db("SELECT id, v FROM t ORDER BY id") == [(1, 5), (2, 6)]
    with pytest.raises(PlanError, match="on_conflict has no meaning without mode: upsert"):
        sink(options, on_conflict="nothing").check_schema(columns)


def test_tables_that_upserts_would_damage(options: dict[str, Any], db: Client) -> None:
    rows = batch_of([{"id": 1, "n": 1}], pa.schema([("id", pa.int32()), ("n", pa.int32())]))
    db("CREATE TABLE t (id int PRIMARY KEY, n int, UNIQUE `by n` (n))")
    with pytest.raises(Permanent, match="unique index on n beside the primary key id") as other:
        write(sink(options, ["id"]), rows)
    assert other.value.code == "other-unique-index"
    db("DROP INDEX `by n` ON t", "CREATE UNIQUE INDEX wider ON t (n, id)")
    assert write(sink(options, ["id"]), rows) == {}
    db("ALTER TABLE t ENGINE = Aria")
    with pytest.raises(Permanent, match="engine Aria, which has no transactions") as engine:
        write(sink(options), rows, 1)
    assert engine.value.code == "no-transactions"
    db("DROP TABLE t", "CREATE TABLE t (id int, n int)")
    with pytest.raises(Permanent, match="no unique index"):
        write(sink(options, ["id"]), rows, 1)


def test_added_columns(options: dict[str, Any], db: Client) -> None:
    of = sink(options, schema_changes="apply")
    write(of, batch_of([{"id": 1}], pa.schema([("id", pa.int64())])))
    wider = pa.schema([("id", pa.int64()), ("a `b`", pa.float64()), ("at", UTC)])
    target = of.target_schema(wider)
    assert target is not None
    of.change_schema(compare_schemas(wider, target))
    assert write(of, batch_of([{"id": 2, "a `b`": 0.5, "at": NOW}], wider), 1) == {}
    target = of.target_schema(wider)
    assert target is not None and not compare_schemas(wider, target)
    assert db("SELECT * FROM t ORDER BY id") == [(1, None, None), (2, 0.5, WALL)]


def test_rows_of_transactions_that_commit_late(
    options: dict[str, Any], db: Client, mariadb: MariaDb
) -> None:
    """A row is not passed by if its transaction commits after a row with a greater ID."""
    db("CREATE TABLE t (id bigint unsigned PRIMARY KEY AUTO_INCREMENT, at datetime(6))")
    insert = f"INSERT INTO {options['table']} (at) VALUES (now(6) - INTERVAL 1 HOUR)"
    of = source(options, watch=True, interval="1ms")
    by_time = source(options, watch=True, interval="1ms", cursor_columns=["at"], min_age="1s")
    with mariadb.client(autocommit=False) as connection, mariadb.client() as reader:
        late = Client(connection)
        reader.begin()
        Client(reader)(f"SELECT * FROM {options['table']}")
        late(insert)
        db(insert)
        rows, _, offset = read(of)
        assert rows == [] and read(by_time)[0] == []
        # A reader does not delay rows in the order of their IDs.
        connection.commit()
        rows, _, offset = read(of, offset)
        assert [int(row["id"]) for row in rows] == [1, 2]
        assert read(by_time)[0] == []
        reader.rollback()
        assert len(read(by_time)[0]) == 2
    db(insert, "INSERT INTO t (at) VALUES (now(6) + INTERVAL 1 HOUR)")
    assert [int(row["id"]) for row in read(of, offset)[0]] == [3, 4]


def test_late_commits_without_the_privilege(
    options: dict[str, Any], db: Client, mariadb: MariaDb
) -> None:
    schema = options["table"].partition(".")[0]
    db(
        "CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO t VALUES ()",
        f"CREATE USER {schema} IDENTIFIED BY '{PASSWORD}'",
    )  # fmt: skip
    reader = {**options, "auth": {"username": schema, "password": PASSWORD}}
    reader["url"] = f"mariadb://127.0.0.1:{mariadb.port}/{schema}"
    with pytest.raises(Permanent, match="denied permission") as denied:
        source(reader)
    assert denied.value.code == "authorization"
    db(f"GRANT SELECT ON {schema}.* TO {schema}")
    assert read(source(reader, watch=True))[0] == [{"id": 1}]
    assert str(denied.value.hint).startswith("Run GRANT SELECT")
    # The statements of the hints are all that a sink and its ledger need.
    writer = sink(reader)
    rows = batch_of([{"id": 2}], pa.schema([("id", pa.int32())]))
    granted = []
    for _ in range(6):
        try:
            writer.check()
            write(writer, rows)
            break
        except Permanent as error:
            assert error.code == "authorization", error
            granted.append(str(error.hint).removeprefix("Run ").removesuffix("."))
            db(granted[-1])
    assert [text.partition(" TO ")[0].replace(schema, "") for text in granted] == [
        "GRANT INSERT ON ``.`t`", "GRANT CREATE ON ``.`penstock_batches`",
        "GRANT UPDATE ON ``.`penstock_batches`", "GRANT INSERT ON ``.`penstock_batches`",
    ]  # fmt: skip
    assert db("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    with pytest.raises(Permanent, match="has no privilege UPDATE, DELETE on the table"):
        sink(reader, key=("id",)).check()


def test_new_rows_of_a_replica(options: dict[str, Any], db: Client) -> None:
    """A replica that is read-only does not have the transactions that may commit rows of before."""
    db("CREATE TABLE t (id int PRIMARY KEY, at datetime(6))")
    source(options, watch=True).check()
    db("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='u'")
    try:
        source(options, watch=True).check()
        db("SET GLOBAL read_only = 1")
        with pytest.raises(Permanent, match="is a replica, which does not have") as found:
            source(options, watch=True).check()
        assert found.value.code == "standby" and "min_age" in str(found.value.hint)
        source(options).check()
        source(options, watch=True, cursor_columns=["at"], min_age="1h").check()
        db("RESET SLAVE ALL")
        source(options, watch=True).check()
    finally:
        db("SET GLOBAL read_only = 0", "RESET SLAVE ALL")


def test_a_statement_of_the_check_of_privileges_that_fails(
    options: dict[str, Any], db: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no privilege. A generated column is never set by the statements of the check."""
    db(
        "CREATE TABLE t (twice int AS (id * 2) STORED, id int PRIMARY KEY)",
        "CREATE TABLE penstock_batches (sink int)",
    )  # fmt: skip
    sink(options, key=("id",)).check()
    execute = WritingConnection.execute

    def execute_while_locked(
        self: WritingConnection, statement: str, parameters: Sequence[Any] = ()
    ) -> int:
        if not statement.startswith("DELETE"):
            return execute(self, statement, parameters)
        execute(self, "SET SESSION lock_wait_timeout = 1")
        db("LOCK TABLES t WRITE")
        try:
            return execute(self, statement, parameters)
        finally:
            db("UNLOCK TABLES")

    monkeypatch.setattr(WritingConnection, "execute", execute_while_locked)
    with pytest.raises(Transient) as waited:
        sink(options, key=("id",)).check()
    assert waited.value.code == "busy"


def test_queries_and_ranges(options: dict[str, Any], db: Client) -> None:
    db(
        "CREATE TABLE t (name varchar(20) CHARACTER SET latin1, at timestamp(6) NULL, f float, "
        "id int PRIMARY KEY)",
        "INSERT INTO t SELECT concat('it''s 100%', seq % 3), '2024-02-29 23:59:59.123456', "
        "seq, seq FROM seq_1_to_10",
    )
    query = f"SELECT t.*, id * 2 AS twice FROM {options['table']} t WHERE name LIKE 'it%'"
    for cursor in ["name", "id"], ["at", "id"]:
        of = source(options, drop=["table"], query=query, cursor_columns=cursor)
        start = of.initial_offset()
        end = of.latest_offset(start)
        step = of.limit_batch(start, end)
        assert step == end
        of = source(options, drop=["table"], query=query, cursor_columns=cursor, max_records=4)
        step = of.limit_batch(start, end)
        first, rest = (
            [r for p in of.partitions(*part) for b in of.read(p, Read()) for r in b.to_pylist()]
            for part in ((start, step), (step, end))
        )
        assert len(first) == 4 and len(rest) == 6 and of.lag(step, end) == 6
        assert {row["twice"] for row in first + rest} == {2 * n for n in range(1, 11)}
    with pytest.raises(OptionError) as wrong:
        read(source(options, cursor_columns=["f"]))
    assert wrong.value.code == "cursor-type"


def test_abandoned_reads_close_the_connection(options: dict[str, Any], db: Client) -> None:
    db(
        "CREATE TABLE t (id int PRIMARY KEY, s longtext)",
        "INSERT INTO t SELECT seq, repeat('x', 100000) FROM seq_1_to_300",
    )
    of = source(options)
    (partition,) = of.partitions({"after": None}, of.latest_offset({"after": None}))
    parts = of.read(partition, Read())
    assert next(iter(parts)).num_rows == 16
    parts.close()  # type: ignore[attr-defined]
    sizes = [batch.num_rows for batch in of.read(partition, Read())]
    assert sum(sizes) == 300 and max(sizes[1:]) <= 42


def test_hostile_names(options: dict[str, Any], db: Client) -> None:
    table = 'x`; DROP TABLE parent; --%s\\"'
    db("CREATE TABLE parent (id int)")
    schema = options["table"].partition(".")[0]
    quoted = table.replace("`", "``")
    options = {**options, "table": f"{schema}.`{quoted}`"}
    column = "'; DROP TABLE parent; --$1%(x)s `"
    columns = pa.schema([("id", pa.int64()), (column + "?", pa.string())])
    rows = [{"id": 1, column + "?": "'); DROP TABLE parent; -- \\"}]
    assert write(sink(options, ["id"]), batch_of(rows, columns)) == {}
    of = source(options, cursor_columns=[column + "?"])
    assert read(of)[0] == rows
    assert read(of, {"after": ["'); DROP TABLE parent; --", 0]})[0] == rows
    assert write(sink(options, ["id"]), batch_of(rows, columns), 1, pa.array(["d"])) == {}
    assert read(of)[0] == [] and db("SELECT count(*) FROM parent") == [(0,)]
    for name in ("😀", "x" * 65, "x "):
        with pytest.raises(PlanError, match="expected a name of 64 characters"):
            sink(options).check_schema(pa.schema([(name, pa.string())]))


def test_errors_name_the_option(options: dict[str, Any], db: Client, mariadb: MariaDb) -> None:
    db("CREATE TABLE orders (id int PRIMARY KEY)")
    schema = options["table"].partition(".")[0]
    with pytest.raises(OptionError) as missing:
        source({**options, "table": f"{schema}.ordrs"})
    assert missing.value.message == f'there is no table "{schema}.ordrs"'
    assert f"{schema}.orders" in str(missing.value.hint)
    wrong = {**options, "auth": {"username": "made-up-user", "password": "secret-wörd ☃"}}
    with pytest.raises(Permanent, match="authentication") as denied:
        sink(wrong).check()
    assert "secret-w" not in str(denied.value) and PASSWORD not in str(denied.value)
    with pytest.raises(Permanent, match="Unknown database") as unknown:
        sink({**options, "url": f"mysql://127.0.0.1:{mariadb.port}/nowhere"}).check()
    assert unknown.value.code == "unknown-database"
    with pytest.raises(Transient, match="could not reach"):
        sink({**options, "url": "mysql://127.0.0.1:1/nowhere", "timeout": "2s"}).check()
    with pytest.raises(PlanError, match="no type for"):
        sink(options).check_schema(pa.schema([("a", pa.duration("us"))]))


def test_tls(options: dict[str, Any], db: Client, mariadb: MariaDb) -> None:
    trusted = {**options, "tls": {"ca": str(mariadb.ca)}}
    with closing(sink(trusted).connect()) as connection:
        ((_, cipher),) = connection.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    assert cipher
    with pytest.raises(Permanent, match="certificate verify failed") as unknown:
        sink({**options, "tls": True}).check()
    assert unknown.value.code == "tls"
    other = {**trusted, "url": trusted["url"].replace("127.0.0.1", "127.1")}
    with pytest.raises(Permanent, match=r"not valid for '127\.1'") as of_other_name:
        sink(other).check()
    assert of_other_name.value.code == "tls" and "host name" in str(of_other_name.value.hint)
    sink({**other, "tls": {**other["tls"], "verify_hostname": False}}).check()
    with closing(sink(options).connect()) as connection:
        assert connection.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'") == [("Ssl_cipher", "")]


def test_rows_beyond_the_packet_of_the_server(options: dict[str, Any], db: Client) -> None:
    of = sink(options)
    columns = pa.schema([("id", pa.int32()), ("raw", pa.binary())])
    rows = batch_of(
        [{"id": n, "raw": bytes(2**20 * (8 if n == 1 else 1))} for n in range(3)], columns
    )
    failures = write(of, rows)
    assert [*failures] == [1] and "max_allowed_packet of the server is 16777216" in failures[1]
    assert db("SELECT count(*) FROM t") == [(2,)]


def test_locks_and_silence_end_in_time(
    options: dict[str, Any], db: Client, mariadb: MariaDb
) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY)")
    row = batch_of([{"id": 1}], pa.schema([("id", pa.int32())]))
    with mariadb.client(autocommit=False) as other:
        Client(other)(f"INSERT INTO {options['table']} VALUES (1)")
        with pytest.raises(Transient, match="Lock wait timeout") as locked:
            write(sink({**options, "timeout": "1s"}), row)
        assert locked.value.hint
    with closing(sink({**options, "timeout": "300ms"}).connect()) as connection:
        connection.client._read_timeout = 0.3
        mariadb.pause()
        try:
            with pytest.raises(Transient, match="could not reach"):
                connection.query("SELECT 1")
            with pytest.raises(Transient, match="could not reach"):
                connection.query("SELECT 1")
        finally:
            mariadb.resume()
    assert write(sink(options), row) == {}


def test_deadlocks_are_transient(options: dict[str, Any], db: Client, mariadb: MariaDb) -> None:
    db("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 0), (2, 0)")
    of = sink(options, ["id"])
    columns = pa.schema([("id", pa.int32()), ("n", pa.int32())])
    with mariadb.client(autocommit=False) as client, closing(of.connect()) as connection:
        other = Client(client)
        other(f"UPDATE {options['table']} SET n = 1 WHERE id = 2")
        connection.upsert(of.table, batch_of([{"id": 1, "n": 5}], columns), ["id"])

        def wait() -> None:
            with suppress(pymysql.MySQLError):
                other(f"UPDATE {options['table']} SET n = 1 WHERE id = 1")

        waiting = threading.Thread(target=wait)
        waiting.start()
        try:
            with pytest.raises(Transient):
                connection.upsert(of.table, batch_of([{"id": 2, "n": 5}], columns), ["id"])
                raise Transient("the other transaction was the victim")
        finally:
            connection.rollback()
            waiting.join()


def test_ended_connections_are_transient(options: dict[str, Any], db: Client) -> None:
    with closing(sink(options).connect()) as connection:
        ((thread,),) = connection.query("SELECT CONNECTION_ID()")
        db(f"KILL {thread}")
        for _ in range(2):
            with pytest.raises(Transient, match="could not reach"):
                connection.query("SELECT 1")
    db("CREATE TABLE t (id int)")
    db("SET GLOBAL read_only = 1")
    try:
        with closing(sink(options).connect()) as connection, pytest.raises(Rejected):
            connection.execute("INSERT INTO missing_rows VALUES (1)")
            raise Rejected("users with all privileges may write")
    except Permanent as error:
        assert "doesn't exist" in error.message
    finally:
        db("SET GLOBAL read_only = 0")


def test_rows_of_every_type(mariadb: MariaDb, tmp_path: Path) -> None:
    assert by_hand.check(systems.mysql(mariadb), tmp_path) == []


def test_own_types_are_copied_or_rejected(mariadb: MariaDb, tmp_path: Path) -> None:
    assert native.check(native_tables.mysql(mariadb), tmp_path) == []


def test_hostile_names_and_values(mariadb: MariaDb) -> None:
    database = mariadb.new_database()

    def options(name: str) -> dict[str, Any]:
        return {**mariadb.login, "table": f"{database}.{quoted(name)}"}

    target = hostile.Target(MysqlSink, MysqlSource, options)
    rejected = {name for name in hostile.NAMES if len(name) > 64 or name[-1] in " \t"}
    assert target.rejected_columns() == {"a\0b", "😀", *rejected} == target.rejected_tables()
    target.check_values()


def test_a_limit_of_connections_is_transient(
    options: dict[str, Any], db: Client, mariadb: MariaDb
) -> None:
    """The server answers before the handshake. Drivers of JDBC have SQLSTATEs of their own."""
    sinks: list[Any] = [sink(options)]
    for system, package in (("mysql", MYSQL), ("mariadb", MARIADB)):
        by_jdbc = {
            "url": f"jdbc:{system}://127.0.0.1:{mariadb.port}/{options['table'].partition('.')[0]}",
            "jars": [driver(package)], "auth": options["auth"], "table": "t",
        }  # fmt: skip
        sinks.append(JdbcSink.create(JdbcSink.config_type.model_validate(by_jdbc)))
    ((limit,),) = db("SELECT @@max_connections")
    db("SET GLOBAL max_connections = 10")
    try:
        with ExitStack() as stack:
            with suppress(pymysql.OperationalError):
                for _ in range(20):
                    stack.enter_context(mariadb.client())
            for each in sinks:
                with pytest.raises(Transient, match=r"^could not connect .*Too many conn") as found:
                    each.check()
                assert found.value.code == "busy" and "max_connections" in str(found.value.hint)
    finally:
        db(f"SET GLOBAL max_connections = {limit}")
    for each in sinks:
        each.check()


def test_interrupted_connections(
    options: dict[str, Any], mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MysqlConnection, "silence", 0.2)
    with Gate(mariadb.port) as gate:
        check = Interruptions(gate, PASSWORD)
        check_table(check, MysqlSink, MysqlSource, check.through(options, timeout="500ms"))


def test_a_read_only_server_is_transient(
    options: dict[str, Any], db: Client, mariadb: MariaDb
) -> None:
    """A batch is written once the server is the primary again."""
    database = options["table"].partition(".")[0]
    db(
        "CREATE TABLE t (id int PRIMARY KEY)",
        f"CREATE USER {database} IDENTIFIED BY '{PASSWORD}'",
        f"GRANT ALL ON {database}.* TO {database}",
    )
    url = options["url"].replace(DATABASE.replace(" ", "%20"), database)
    limited = {**options, "url": url, "auth": {"username": database, "password": PASSWORD}}
    of, row = sink(limited, ["id"]), batch_of([{"id": 1}], pa.schema([("id", pa.int32())]))
    of.prepare(row.schema)
    db("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(Transient, match="--read-only") as found:
            write(of, row)
    finally:
        db("SET GLOBAL read_only = 0")
    assert found.value.code == "busy" and "primary" in str(found.value.hint)
    assert write(of, row) == {} and db("SELECT id FROM t") == [(1,)]
