"""Tables of SQLite, written and read without Spark."""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crossing import hostile
from crossing.hostile import quoted
from penstock.connectors.sqlite import SqliteSink, SqliteSource
from penstock.core.errors import OptionError, PenstockError, Permanent, PlanError, Transient
from penstock.sdk import BatchId, Read, compare_schemas
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.rows import batch_of

UTC = pa.timestamp("us", tz="UTC")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a b?#%.db")


@pytest.fixture
def db(path: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def sink(path: str, key: Sequence[str] = (), **options: Any) -> SqliteSink:
    config = SqliteSink.config_type.model_validate({"path": path, "table": "t", **options})
    made = SqliteSink(config)  # type: ignore[arg-type]
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def write(
    of: SqliteSink, rows: pa.RecordBatch, number: int = 0, operations: Any = None
) -> dict[int, str]:
    """Writes a batch. Returns the messages of the rejected rows by their index."""
    batch = BatchId("q", number)
    of.prepare(rows.schema)
    with closing(of.open()) as client:
        writer = of.writer(client, batch, 0, rows.schema)
        failures = writer.write(rows, None, operations)
        of.commit(batch, [writer.commit()])
    return {failure.index: failure.error.message for failure in failures}


def source(path: str, **options: Any) -> SqliteSource:
    table = {} if "query" in options else {"table": "t"}
    config = SqliteSource.config_type.model_validate({"path": path, **table, **options})
    return SqliteSource(config)  # type: ignore[arg-type]


def read(of: SqliteSource, offset: Any = None) -> tuple[list[dict[str, Any]], Any, Read]:
    of.columns = of.columns or of.infer_schema()
    start = offset or of.initial_offset()
    end = of.latest_offset(start)
    asked = Read()
    parts = of.partitions(start, end)
    rows = [row for part in parts for batch in of.read(part, asked) for row in batch.to_pylist()]
    return rows, end, asked


def test_every_value_is_read_as_it_was_written(path: str) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
            ("p", pa.decimal128(38, 18)), ("w", pa.decimal128(38, 0)), ("b", pa.binary()),
            ("day", pa.date32()), ("at", UTC), ("local", pa.timestamp("us")), ("yes", pa.bool_()),
            json_field(pa.field("j", pa.string())), ("s", pa.string()),
        ]
    )  # fmt: skip
    wide = Decimal("12345678901234567890.123456789012345678")
    late = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    rows = [
        (1, 1.5, 0.1, wide, Decimal(10**38 - 1), b"\0\xff", dt.date(1, 1, 1),
         late.replace(tzinfo=dt.UTC), late, True, {"a": [1, None]}, "a\0b"),
        (-(2**63), math.inf, -math.inf, -wide, Decimal(0), b"", dt.date(9999, 12, 31),
         dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(1, 1, 1), False, 1, ""),
        (2**63 - 1, -0.0, 5e-324, Decimal("1E-18"), Decimal(1), b"1", dt.date(1970, 1, 1),
         dt.datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=dt.UTC), late, None, "x", "007"),
        (4, *[None] * 11),
    ]  # fmt: skip
    batch = batch_of([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    assert not write(sink(path), batch)
    made = source(path)
    found, _, asked = read(made)
    assert not asked.bad
    assert made.columns is not None
    assert made.columns.field("f").type == pa.float64()
    assert made.columns.remove(1) == schema.remove(1)
    assert found == batch.to_pylist()


def test_values_within_json_text_are_exact(path: str) -> None:
    digits = Decimal("12345678901234567890.123456789012345678")
    nested = pa.struct([("raw", pa.binary()), ("at", UTC), ("all", pa.list_(pa.binary()))])
    rows = pa.RecordBatch.from_pylist(
        [
            {
                "prices": [digits, None], "rates": [(-1, digits)],
                "in": {"raw": b"\0\xff", "at": dt.datetime(1, 1, 1, tzinfo=dt.UTC), "all": [b"b"]},
                "any": ['"1"', "1", '{"a": "1", "b": [1.50]}', None],
            },
            dict.fromkeys(("prices", "rates", "in", "any")),
        ],
        pa.schema(
            [
                ("prices", pa.list_(pa.decimal128(38, 18))),
                ("rates", pa.map_(pa.int32(), pa.decimal128(38, 18))), ("in", nested),
                ("any", pa.list_(json_field(pa.field("element", pa.string())))),
            ]
        ),
    )  # fmt: skip
    assert write(sink(path), rows) == {}
    of = source(path)
    of.columns = rows.schema
    assert read(of)[0] == rows.to_pylist()


def test_json_text_of_another_structure(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a JSON_TEXT)")
    db.executemany("INSERT INTO t VALUES (?)", [("[1]",), ('{"a": 1}',), ("no",), ('["x"]',)])
    of = source(path)
    of.columns = pa.schema([("a", pa.list_(pa.int64()))])
    rows, _, found = read(of)
    assert rows == [{"a": [1]}]
    messages = [bad.error.message for bad in found.bad]
    assert len(messages) == 3 and all('column "a"' in message for message in messages)
    assert messages[2] == 'column "a": "x" (STRING) is not a BIGINT'


def test_nan_is_not_null(path: str) -> None:
    rows = pa.record_batch({"x": pa.array([math.nan, None, 1.0])})
    write(sink(path), rows)
    (nan, null, one), *_ = read(source(path))
    assert math.isnan(nan["x"]) and null["x"] is None and one["x"] == 1.0


def test_rejected_rows_are_found_among_others(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (id BIGINT UNIQUE, n INTEGER NOT NULL CHECK (n < 100), s TEXT)")
    rows = [{"id": i % 40, "n": i if i % 9 else None, "s": str(i)} for i in range(120)]
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
    bad = write(sink(path), batch_of(rows, schema))
    expected: dict[int, dict[str, Any]] = {}
    for index, row in enumerate(rows):
        if row["id"] not in expected and row["n"] is not None and row["n"] < 100:
            expected[row["id"]] = row
        else:
            assert "constraint failed" in bad.pop(index)
    assert not bad
    found, *_ = read(source(path))
    assert found == sorted(expected.values(), key=lambda row: int(row["s"]))


def test_a_batch_is_written_once(path: str) -> None:
    rows = pa.record_batch({"id": [1, 2]})
    for number in (0, 1, 1, 0):
        assert not write(sink(path), rows, number)
    assert [row["id"] for row in read(source(path))[0]] == [1, 2, 1, 2]
    assert sink(path).last_batch("q") == BatchId("q", 1)


def test_changes(path: str) -> None:
    made = sink(path, ["a", "b"])
    first = pa.record_batch({"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"], "n": [1, 2, 3, 4]})
    assert write(made, first) == {3: "expected a value in the primary key, found null in a"}
    second = pa.record_batch({"a": [1, 2, None, 9], "b": ["x", "x", "z", "q"], "n": [7, 8, 9, 0]})
    bad = write(made, second, 1, pa.array(["d", "u", "d", "d"]))
    assert list(bad) == [2]
    assert [tuple(row.values()) for row in read(source(path))[0]] == [(1, "y", 2), (2, "x", 8)]
    assert source(path).infer_primary_key() == ("a", "b")


def test_a_key_needs_a_unique_index(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a BIGINT, b TEXT)")
    rows = pa.record_batch({"a": [1, 1], "b": ["x", "y"]})
    with pytest.raises(Permanent, match="no unique index on the primary key a") as caught:
        write(sink(path, ["a"]), rows)
    assert caught.value.hint == "Run CREATE UNIQUE INDEX `t_a` ON `t` (`a`)."
    db.execute(caught.value.hint.removeprefix("Run ").removesuffix("."))
    assert not write(sink(path, ["a"]), rows.slice(1))
    assert not write(sink(path, ["a"]), rows.slice(0, 1), 1)
    assert db.execute("SELECT * FROM t").fetchall() == [(1, "x")]


def test_replaced_tables(path: str) -> None:
    made = sink(path)
    made.mode = "replace"
    write(made, pa.record_batch({"id": [1, 2]}))
    write(made, pa.record_batch({"id": [3]}), 1)
    assert read(source(path))[0] == [{"id": 3}]
    made.commit(BatchId("q", 2), [])
    assert read(source(path))[0] == []


def test_truncated_tables(path: str) -> None:
    made = sink(path, ["id"])
    write(made, pa.record_batch({"id": [1, 2]}))
    made.commit(BatchId("q", 1, truncates=True), [])
    assert read(source(path))[0] == []


def test_new_columns(path: str) -> None:
    write(sink(path), pa.record_batch({"a": [1]}))
    rows = pa.record_batch({"a": [2], "new column": [["x"]], "p": [Decimal("1.5")]})
    changes = compare_schemas(rows.schema, sink(path).target_schema(rows.schema) or pa.schema([]))
    with pytest.raises(PlanError, match='"new column" ARRAY<STRING> is missing'):
        sink(path).change_schema(changes)
    made = sink(path, schema_changes="apply")
    made.change_schema(changes)
    write(made, rows, 1)
    target = made.target_schema(rows.schema)
    assert target == rows.schema
    assert not compare_schemas(rows.schema, target)


def test_names_in_another_case(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (userId BIGINT PRIMARY KEY, note TEXT)")
    rows = pa.record_batch({"USERID": [1, 2], "Note": ["a", "b"]})
    made = sink(path, ["USERID"], schema_changes="apply")
    target = made.target_schema(rows.schema)
    assert target is not None and not compare_schemas(rows.schema, target)
    assert not write(made, rows)
    assert not write(made, rows.slice(1), 1, pa.array(["d"]))
    assert db.execute("SELECT userId, note FROM t").fetchall() == [(1, "a")]


def test_missing_tables(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE orders (a BIGINT)")
    made = sink(path, table="oders", create=False)
    for call in (made.check, lambda: made.prepare(pa.schema([("a", pa.int64())]))):
        with pytest.raises(OptionError, match='there is no table "oders"') as caught:
            call()
        assert "orders" in (caught.value.hint or "")
    assert "CREATE TABLE IF NOT EXISTS `oders` (`a` BIGINT)" in (caught.value.hint or "")
    with pytest.raises(OptionError, match='there is no table "oders"') as missing:
        source(path, table="oders").check()
    assert "orders" in (missing.value.hint or "")


def test_declared_columns_that_the_table_lacks(path: str, db: sqlite3.Connection) -> None:
    """SQLite reads a name in double quotes as a text, if there is no column of the name."""
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, `odd ``name` TEXT)")
    db.execute("INSERT INTO t VALUES (1, 'a', 'b')")
    made = source(path)
    made.columns = pa.schema([("id", pa.int64()), ("nam", pa.string())])
    with pytest.raises(PenstockError, match="no such column: nam"):
        read(made)
    with pytest.raises(OptionError, match='t has no column "nam"') as caught:
        made.check()
    assert caught.value.hint == 'did you mean "name"?'
    made.columns = pa.schema([("ID", pa.int64()), ("odd `name", pa.string())])
    made.check()
    assert read(made)[0] == [{"ID": 1, "odd `name": "b"}]


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="cannot open the database") as caught:
        source(str(tmp_path / "none.db")).check()
    assert caught.value.hint and not (tmp_path / "none.db").exists()
    with pytest.raises(Permanent, match="cannot open the database"):
        sink(str(tmp_path / "none" / "x.db")).check()
    (tmp_path / "text.db").write_text("x" * 5000)
    with pytest.raises(Permanent, match="file is not a database"):
        source(str(tmp_path / "text.db")).check()


def test_a_locked_database(
    path: str, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.sqlite.connection.BUSY_TIMEOUT", 0.05)
    rows = pa.record_batch({"a": [1]})
    write(sink(path), rows)
    db.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Transient, match="database is locked"):
        write(sink(path), rows, 1)
    db.execute("ROLLBACK")
    write(sink(path), rows, 1)
    assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_rows_with_the_same_time(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP, n)")
    times = ["2024-05-01 09:00:00"] * 3 + ["2024-05-01 10:00:00"]
    db.executemany("INSERT INTO t VALUES (?, ?, '')", enumerate(times))
    made = source(
        path,
        cursor_columns=["changed"],
        watch=True,
        interval="1 ms",
        max_records=2,
        min_age="1 hour",
    )
    made.columns = pa.schema([("id", pa.int64())])
    offset, ids = made.initial_offset(), []
    end = made.latest_offset(offset)
    while offset != end:
        batch_end = made.limit_batch(offset, end)
        for part in made.partitions(offset, batch_end):
            ids += [b["id"].to_pylist() for b in made.read(part, Read())]
        offset = batch_end
    assert ids == [[0, 1], [2, 3]]
    db.execute("UPDATE t SET changed = datetime('now', '-2 hours') WHERE id = 1")
    db.execute("INSERT INTO t VALUES (9, datetime('now'), '')")
    rows, offset, _ = read(made, offset)
    assert rows == [{"id": 1}]
    assert read(made, offset)[0] == []


def test_new_rows_are_read_after_two_seconds(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)")
    db.execute(
        "INSERT INTO t VALUES (1, datetime('now', '-3 seconds')), (2, datetime('now', '1 day'))"
    )
    made = source(path, cursor_columns=["changed"], watch=True)
    made.columns = pa.schema([("id", pa.int64())])
    assert read(made)[0] == [{"id": 1}]
    made = source(path, cursor_columns=["changed"])
    made.columns = pa.schema([("id", pa.int64())])
    assert read(made)[0] == [{"id": 1}, {"id": 2}]


def test_a_null_in_the_key(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (at TIMESTAMP NOT NULL, id TEXT PRIMARY KEY)")
    db.execute("INSERT INTO t VALUES ('2024-05-01', 'a'), ('2024-05-01', NULL)")
    with pytest.raises(Permanent, match="rows with null in the cursor columns at, id"):
        read(source(path, cursor_columns=["at"]))


def test_rows_without_a_place_in_the_order(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (id TEXT PRIMARY KEY, changed TIMESTAMP) WITHOUT ROWID")
    db.execute("INSERT INTO t VALUES ('a', NULL), ('b', 1)")
    with pytest.raises(Permanent, match="rows with null in the cursor columns changed"):
        read(source(path, cursor_columns=["changed"]))
    with pytest.raises(OptionError, match="has no primary key of one integer"):
        read(source(path, watch=True))
    with pytest.raises(OptionError, match='t has no column "chnged"') as caught:
        source(path, cursor_columns=["chnged"]).check()
    assert "changed" in (caught.value.hint or "")
    made = source(path)
    made.columns = pa.schema([("id", pa.string())])
    assert read(made)[0] == [{"id": "a"}, {"id": "b"}]


def test_values_of_other_types_are_rejected(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, p DECIMAL(6, 2), at DATETIME)")
    db.executemany(
        "INSERT INTO t (n, p, at) VALUES (?, ?, ?)",
        [(1, 1.1, "2024-05-01T09:15:00Z"), ("x", 1, None), (1.5, 1, None), (2, 1.005, None),
         (3, 4, "soon"), (None, None, None), (5, "7.25", "2024-05-01 09:15:00.5")],
    )  # fmt: skip
    db.execute("INSERT INTO t (n, at) VALUES (6, CAST(x'ff' AS TEXT))")
    rows, _, asked = read(source(path))
    nine = dt.datetime(2024, 5, 1, 9, 15, tzinfo=dt.UTC)
    assert [tuple(row.values()) for row in rows] == [
        (1, 1, Decimal("1.10"), nine),
        (6, None, None, None),
        (7, 5, Decimal("7.25"), nine.replace(microsecond=500_000)),
    ]
    assert [(bad.origin, bad.position) for bad in asked.bad] == [("t", i) for i in (2, 3, 4, 5, 8)]
    assert [(bad.error.message, bad.error.code) for bad in asked.bad[:4]] == [
        ('column "n": "x" (STRING) is not a BIGINT', "wrong-type"),
        ('column "n": 1.5 (DOUBLE) is not a BIGINT', "wrong-type"),
        ('column "p": 1.005 (DOUBLE) is not a DECIMAL(6, 2)', "wrong-type"),
        ('column "at": "soon" (STRING) is not a TIMESTAMP', "wrong-type"),
    ]


def test_queries(path: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE o (id INTEGER PRIMARY KEY, amount DECIMAL(10, 2), at TIMESTAMP)")
    db.execute("INSERT INTO o VALUES (1, 2.5, '2024-05-01'), (2, 3, '2024-05-02')")
    made = source(
        path, query="SELECT id, amount, id * 2 AS twice, 'x' AS s FROM o", cursor_columns=["id"]
    )
    rows, _, _ = read(made)
    assert [tuple(row.values()) for row in rows] == [
        (1, Decimal("2.50"), 2, "x"), (2, Decimal("3.00"), 4, "x"),
    ]  # fmt: skip
    for query in ("SELECT 1; DROP TABLE o", "DROP TABLE o", "SELECT no FROM o"):
        with pytest.raises(Permanent):
            source(path, query=query).check()
    assert db.execute("SELECT count(*) FROM o").fetchone() == (2,)


def test_a_sink_does_not_read_names_as_sql(path: str) -> None:
    name = 't"; DROP TABLE x; --'
    quoted = '"' + name.replace('"', '""') + '"'
    rows = pa.record_batch({name: ["'); DROP TABLE x; --"]})
    made = sink(path, [name], table=quoted)
    assert not write(made, rows)
    assert read(source(path, table=quoted))[0] == rows.to_pylist()


@pytest.mark.slow
def test_hostile_names_and_values(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "db")}
    target = hostile.Target(
        SqliteSink, SqliteSource, lambda name: {**options, "table": quoted(name)}, folds=True
    )
    assert target.rejected_columns() == {"a\0b"} == target.rejected_tables()
    target.check_values()
