"""Tables of DuckDB, written and read without Spark."""

from __future__ import annotations

import datetime as dt
import math
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from crossing import hostile, native, native_tables
from crossing.hostile import quoted
from penstock.connectors.duckdb import DuckdbSink, DuckdbSource
from penstock.core.errors import OptionError, Permanent, PlanError, Transient
from penstock.sdk import BatchId, Read, compare_schemas
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.rows import batch_of
from penstock.sdk.database import TableName

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a 'b?#%.db")


def run(path: str, *statements: str) -> list[tuple[Any, ...]]:
    """Executes statements as another program. Returns the rows of the last one."""
    with duckdb.connect(path) as db:
        db.execute("SET TimeZone = 'UTC'")
        for statement in statements:
            rows = db.execute(statement).fetchall()
        return rows


@contextmanager
def another_process(path: str, statement: str = "") -> Iterator[subprocess.Popen[str]]:
    """Keeps a file open for writing in another process, after a statement."""
    code = (
        "import sys, duckdb; db = duckdb.connect(sys.argv[1])\n"
        "db.execute(sys.argv[2] or 'SELECT 1')\nprint('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-Ic", code, path, statement],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        yield process


def sink(path: str, key: Sequence[str] = (), **options: Any) -> DuckdbSink:
    made = DuckdbSink.create(
        DuckdbSink.config_type.model_validate({"path": path, "table": "t", **options})
    )
    assert isinstance(made, DuckdbSink)
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def write(
    of: DuckdbSink, rows: pa.RecordBatch, number: int = 0, operations: Any = None, parts: int = 1
) -> dict[int, str]:
    """Writes a batch in parts. Returns the messages of the rejected rows by their index."""
    batch = BatchId("q", number)
    of.prepare(rows.schema)
    size = -(-rows.num_rows // parts)
    failures = {}
    with closing(of.open()) as client:
        writer = of.writer(client, batch, 0, rows.schema)
        for start in range(0, rows.num_rows, size):
            kinds = None if operations is None else operations.slice(start, size)
            for failure in writer.write(rows.slice(start, size), None, kinds):
                failures[start + failure.index] = failure.error.message
        of.commit(batch, [writer.commit()])
    return failures


def source(path: str, **options: Any) -> DuckdbSource:
    table = {} if "query" in options else {"table": "t"}
    made = DuckdbSource.create(
        DuckdbSource.config_type.model_validate({"path": path, **table, **options})
    )
    assert isinstance(made, DuckdbSource)
    return made


def read(of: DuckdbSource, offset: Any = None) -> tuple[list[dict[str, Any]], Any, Read]:
    of.columns = of.columns or of.infer_schema()
    start = offset or of.initial_offset()
    end = of.latest_offset(start)
    asked = Read()
    parts = of.partitions(start, end)
    rows = [row for part in parts for batch in of.read(part, asked) for row in batch.to_pylist()]
    return rows, end, asked


@pytest.mark.slow
def test_types_are_read_without_loss(path: str) -> None:
    run(
        path,
        """CREATE TABLE t (
          id BIGINT PRIMARY KEY, ub UBIGINT, h HUGEINT, uh UHUGEINT, ti UTINYINT, d DECIMAL(30, 10),
          s TIMESTAMP_S, ms TIMESTAMP_MS, ns TIMESTAMP_NS, tz TIMESTAMPTZ, day DATE,
          local TIMESTAMP,
          tod TIME, i INTERVAL, u UUID, e ENUM ('glad', 'so "so"'), j JSON, b BLOB, bits BIT,
          l INTEGER[], a INTEGER[2], st STRUCT(x HUGEINT, "y ""z" TIME), m MAP(VARCHAR, UUID),
          un UNION(num INTEGER, str VARCHAR), deep UNION(a INTEGER, "b c" TIME[])[], f FLOAT)""",
        """INSERT INTO t VALUES (1, 18446744073709551615, -12345678901234567890123456789012345678,
          340282366920938463463374607431, 255, 12345678901234567890.0123456789,
          '2024-02-29 23:59:59', '2024-02-29 23:59:59.123', '2024-02-29 23:59:59.123456',
          '2024-02-29 23:59:59.123456+00', '2024-02-29', '2024-02-29 23:59:59.123456', '10:11:12.5',
          INTERVAL '1 day 2 hours', '6f9619ff-8b86-d011-b42d-00cf4fc964ff', 'so "so"', '{"a": 1.0}',
          '\\x00\\xFF'::BLOB, '101', [1, NULL], [1, 2], {'x': 5, 'y "z': TIME '10:00:00'},
          MAP {'k': UUID '6f9619ff-8b86-d011-b42d-00cf4fc964ff'}, 'text',
          [1::UNION(a INTEGER, "b c" TIME[]), [TIME '11:00:00']::UNION(a INTEGER, "b c" TIME[]),
          NULL], 'NaN')""",
        "INSERT INTO t (id) VALUES (2)",
    )
    made = source(path)
    (row, nulls), _, asked = read(made)
    assert not asked.bad and made.columns is not None
    assert math.isnan(row.pop("f"))
    local = NOW.replace(tzinfo=None)
    assert row == {
        "id": 1, "ub": Decimal(2**64 - 1), "h": Decimal(-12345678901234567890123456789012345678),
        "uh": Decimal(340282366920938463463374607431), "ti": 255,
        "d": Decimal("12345678901234567890.0123456789"), "s": local.replace(microsecond=0),
        "ms": local.replace(microsecond=123000), "ns": local, "tz": NOW, "day": NOW.date(),
        "local": local, "tod": "10:11:12.5", "i": "1 day 02:00:00",
        "u": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "e": 'so "so"', "j": '{"a": 1.0}',
        "b": b"\x00\xff", "bits": "101", "l": [1, None], "a": [1, 2],
        "st": {"x": Decimal(5), 'y "z': "10:00:00"},
        "m": [("k", "6f9619ff-8b86-d011-b42d-00cf4fc964ff")], "un": {"num": None, "str": "text"},
        "deep": [{"a": 1, "b c": None}, {"a": None, "b c": ["11:00:00"]}, None],
    }  # fmt: skip
    assert set(map(str, nulls.values())) == {"2", "None"}
    types = {field.name: field.type for field in made.columns}
    assert types["tz"] == UTC and types["ub"] == pa.decimal128(20, 0)


def test_values_beyond_their_type_are_dead_letters(path: str) -> None:
    run(
        path,
        "CREATE TABLE t (id INT PRIMARY KEY, d DATE, tz TIMESTAMPTZ, ns TIMESTAMP_NS, h HUGEINT,"
        " l DATE[])",
        """INSERT INTO t VALUES (1, 'infinity', NULL, NULL, NULL, NULL),
        (2, NULL, '-infinity', NULL, NULL, NULL), (3, '2024-01-01', 'epoch', 'epoch', 2, []),
        (4, '0044-03-15 (BC)', NULL, NULL, NULL, NULL), (5, NULL, '20240-01-01', NULL, NULL, NULL),
        (6, NULL, NULL, '2024-01-01 00:00:00.000000001', NULL, NULL),
        (7, NULL, NULL, NULL, 170141183460469231731687303715884105727, NULL),
        (8, NULL, NULL, 'infinity', NULL, NULL), (9, NULL, NULL, NULL, NULL, ['infinity'])""",
    )
    rows, _, asked = read(source(path))
    assert [row["id"] for row in rows] == [3]
    messages = [bad.error.message for bad in asked.bad]
    assert len(messages) == 8 and all("column" in message for message in messages), messages
    assert messages[0] == 'column "d": infinity (DATE) is not a DATE'
    assert "2024-01-01T00:00:00.000000001" in messages[4]
    texts = source(path)
    texts.columns = pa.schema([(name, pa.string()) for name in ("d", "tz", "ns", "h")])
    rows, _, asked = read(texts)
    assert not asked.bad
    assert [rows[0]["d"], rows[1]["tz"]] == ["infinity", "-infinity"]
    assert rows[5]["ns"].endswith("00.000000001") and rows[6]["h"] == str(2**127 - 1)


@pytest.mark.slow
def test_types_are_written_without_loss(path: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("small", pa.int8()), ("d", pa.float64()), ("f", pa.float32()),
            ("n", pa.decimal128(38, 18)), ("s", pa.string()), ("raw", pa.binary()), ("at", UTC),
            ("local", pa.timestamp("us")), ("day", pa.date32()), ("flag", pa.bool_()),
            ("texts", pa.list_(pa.string())), ("deep", pa.list_(pa.list_(pa.int32()))),
            ("where", pa.struct([('ci"ty', pa.string()), ("at", UTC)])),
            ("tags", pa.map_(pa.string(), pa.decimal128(10, 2))),
            json_field(pa.field("j", pa.string())),
        ]
    )  # fmt: skip
    row = {
        "id": -(2**63), "small": -128, "d": -0.0, "f": 0.5,
        "n": Decimal("12345678901234567890.000000000000000001"), "s": "a\0b😀'\"", "raw": b"\\x\0",
        "at": NOW, "local": dt.datetime(9999, 12, 31, 23, 59, 59, 999999), "day": dt.date(1, 1, 1),
        "flag": False, "texts": ["", None], "deep": [[1], [], None],
        "where": {'ci"ty': "Bern", "at": NOW}, "tags": [("a", Decimal("1.50"))],
        "j": {"k": [1.5, "x"]},
    }  # fmt: skip
    batch = batch_of([row, {**dict.fromkeys(row), "id": 1}], schema)
    assert write(sink(path), batch) == {}
    declared = dict(run(path, "SELECT column_name, column_type FROM (DESCRIBE t)"))
    assert declared["where"] == 'STRUCT("ci""ty" VARCHAR, "at" TIMESTAMP WITH TIME ZONE)'
    assert declared["tags"] == "MAP(VARCHAR, DECIMAL(10,2))" and declared["j"] == "JSON"
    made = source(path)
    found, _, asked = read(made)
    assert not asked.bad and made.columns == schema
    assert found == batch.to_pylist()


@pytest.mark.slow
def test_values_of_existing_columns(path: str) -> None:
    run(
        path,
        "CREATE TABLE t (id INT, h HUGEINT, e ENUM ('a', 'b'), tod TIME, u UUID,"
        " s TIMESTAMP_S, ub UBIGINT, pair INT[2], un UNION(n BIGINT, s VARCHAR))",
    )
    schema = pa.schema(
        [("id", pa.int32()), ("h", pa.string()), ("e", pa.string()), ("tod", pa.string()),
         ("u", pa.string()), ("s", pa.timestamp("us")), ("ub", pa.int64()),
         ("pair", pa.list_(pa.int32())),
         ("un", pa.struct([("n", pa.int64()), ("s", pa.string())]))]
    )  # fmt: skip
    made = sink(path)
    target = made.target_schema(schema)
    assert target is not None and not compare_schemas(schema, target)
    bad: dict[str, Any] = {
        "h": "1.5", "e": "c", "tod": "10:00:00.1234567", "u": "x", "ub": -1, "pair": [1],
        "s": dt.datetime(2024, 1, 1, 0, 0, 0, 5), "un": {"n": 1, "s": "x"},
    }  # fmt: skip
    good = {"id": 1, "h": str(2**127 - 1), "e": "b", "tod": "10:00:00.5", "pair": [1, 2],
            "s": dt.datetime(2024, 1, 1), "ub": 5, "un": {"n": None, "s": "x"}}  # fmt: skip
    rows = [good, *({"id": 2, name: value} for name, value in bad.items()), good]
    failures = write(made, batch_of(rows, schema))
    assert sorted(failures) == [*range(1, 9)], failures
    assert "expected an integer" in failures[1] and "0 digits" in failures[7]
    assert run(path, "SELECT h, e, un::VARCHAR FROM t") == [(2**127 - 1, "b", "x")] * 2
    for type_ in (pa.decimal128(38, 3), pa.float64()):
        finer = pa.schema([("ub", type_)])
        target = made.target_schema(finer)
        assert target is not None and compare_schemas(finer, target)


@pytest.mark.slow
def test_rejected_rows_are_found_among_others(path: str) -> None:
    run(
        path,
        "CREATE TABLE parent (id INT PRIMARY KEY)", "INSERT INTO parent VALUES (1)",
        "CREATE TABLE t (id BIGINT UNIQUE, n INTEGER NOT NULL CHECK (n < 100), s TEXT,"
        " p INT REFERENCES parent (id), x INT NOT NULL DEFAULT 7)",
        "INSERT INTO t (id, n) VALUES (1000, 1)",
    )  # fmt: skip
    rows = [{"id": i % 80, "n": i if i % 19 else None, "s": str(i), "p": 1} for i in range(120)]
    rows[3]["p"], rows[5]["id"], rows[90]["id"] = 2, 1000, None
    schema = pa.schema(
        [("id", pa.int64()), ("n", pa.int64()), ("s", pa.string()), ("p", pa.int32())]
    )
    bad = write(sink(path), batch_of(rows, schema), parts=3)
    kept: dict[Any, str] = {}
    for index, row in enumerate(rows):
        if (row["id"] in kept and row["id"] is not None) or row["n"] is None or row["n"] >= 100:
            assert "onstraint" in bad[index] or "duplicate key" in bad[index], bad.pop(index)
            bad.pop(index)
        elif index not in (3, 5):
            kept[row["id"]] = row["s"]
    assert sorted(bad) == [3, 5] and "foreign key" in bad[3] and "1000" in bad[5]
    found = run(path, "SELECT id, s FROM t WHERE id IS DISTINCT FROM 1000 ORDER BY s::INT")
    assert dict(found) == kept and len(found) == len(kept)
    assert run(path, "SELECT number FROM penstock_batches") == [(0,)]


def test_a_truncation_that_a_rule_forbids(path: str) -> None:
    run(
        path,
        "CREATE TABLE t (id BIGINT PRIMARY KEY)", "INSERT INTO t VALUES (1)",
        "CREATE TABLE other (id BIGINT REFERENCES t)", "INSERT INTO other VALUES (1)",
    )  # fmt: skip
    made = sink(path)
    made.prepare(pa.schema([("id", pa.int64())]))
    with pytest.raises(
        Permanent, match='the rows of the table "t": DuckDB rejects the st'
    ) as caught:
        made.commit(BatchId("q", 1, truncates=True), [])
    assert "set on_truncate: ignore" in str(caught.value.hint)
    assert run(path, "SELECT id FROM t") == [(1,)]


@pytest.mark.slow
def test_a_batch_is_written_once(path: str) -> None:
    rows = pa.record_batch({"id": [1, 2]})
    for number in (0, 1, 1, 0):
        assert not write(sink(path), rows, number)
    assert [row["id"] for row in read(source(path))[0]] == [1, 2, 1, 2]
    assert sink(path).last_batch("q") == BatchId("q", 1)


@pytest.mark.slow
def test_changes(path: str) -> None:
    made = sink(path, ["a", "b"])
    first = pa.record_batch({"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"], "n": [1, 2, 3, 4]})
    assert write(made, first) == {3: "expected a value in the primary key, found null in a"}
    second = pa.record_batch({"a": [1, 2, None, 9], "b": ["x", "x", "z", "q"], "n": [7, 8, 9, 0]})
    bad = write(made, second, 1, pa.array(["d", "u", "d", "d"]))
    assert list(bad) == [2]
    assert run(path, "FROM t ORDER BY ALL") == [(1, "y", 2), (2, "x", 8)]
    assert source(path).infer_primary_key() == ("a", "b")


@pytest.mark.slow
def test_upserts_among_rejected_rows(path: str) -> None:
    run(
        path,
        "CREATE TABLE t (id INT PRIMARY KEY, mail TEXT UNIQUE, n INT CHECK (n > 0), kept INT)",
        "INSERT INTO t VALUES (1, 'a', 1, 5), (2, 'b', 1, 5)",
    )
    columns = {"id": [1, 2, 3, 4, 5], "mail": ["a", "c", "d", "a", "b"], "n": [2, -1, 3, 4, 5]}
    bad = write(sink(path, ["id"]), pa.record_batch(columns), parts=2)
    assert sorted(bad) == [1, 3, 4]
    assert run(path, "FROM t ORDER BY id") == [
        (1, "a", 2, 5), (2, "b", 1, 5), (3, "d", 3, None),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_key_needs_a_unique_index(path: str) -> None:
    run(path, "CREATE TABLE t (a BIGINT, b TEXT)")
    rows = pa.record_batch({"a": [1, 1], "b": ["x", "y"]})
    with pytest.raises(Permanent, match="no unique index on the primary key a") as caught:
        write(sink(path, ["a"]), rows)
    hint = caught.value.hint or ""
    assert hint == 'Run CREATE UNIQUE INDEX "t_a" ON "t" ("a").'
    run(path, hint.removeprefix("Run ").removesuffix("."))
    assert not write(sink(path, ["a"]), rows.slice(1))
    assert not write(sink(path, ["a"]), rows.slice(0, 1), 1)
    assert run(path, "FROM t") == [(1, "x")]


@pytest.mark.slow
def test_replaced_tables(path: str) -> None:
    run(path, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
    made = sink(path)
    made.mode = "replace"
    write(made, pa.record_batch({"id": [1, 2], "n": [1, 1]}))
    rows = pa.record_batch({"id": [2, 3, 3, 1], "n": [2, 2, 2, None]})
    assert sorted(write(made, rows, 1, parts=2)) == [2, 3]
    assert run(path, "FROM t ORDER BY id") == [(2, 2), (3, 2)]
    made.commit(BatchId("q", 2), [])
    assert read(source(path))[0] == []


def test_new_columns_and_names_in_another_case(path: str) -> None:
    write(sink(path), pa.record_batch({"A": [1]}))
    rows = pa.record_batch({"a": [2], "new column": [["x"]], "p": [Decimal("1.5")]})
    made = sink(path, schema_changes="apply")
    changes = compare_schemas(rows.schema, made.target_schema(rows.schema) or pa.schema([]))
    with pytest.raises(PlanError, match='"new column" ARRAY<STRING> is missing'):
        sink(path).change_schema(changes)
    made.change_schema(changes)
    write(made, rows, 1)
    target = made.target_schema(rows.schema)
    assert target is not None and not compare_schemas(rows.schema, target)
    assert run(path, "FROM t ORDER BY 1") == [(1, None, None), (2, ["x"], Decimal("1.5"))]


@pytest.mark.slow
def test_errors_name_the_option(path: str, tmp_path: Path) -> None:
    run(path, "CREATE TABLE orders (a BIGINT)")
    made = sink(path, table="oders", create=False)
    for call in (made.check, lambda: made.prepare(pa.schema([("a", pa.int64())]))):
        with pytest.raises(OptionError, match='there is no table "oders"') as caught:
            call()
        assert "orders" in (caught.value.hint or "")
    with pytest.raises(OptionError, match='there is no table "oders"'):
        source(path, table="oders").check()
    with pytest.raises(PlanError, match="no type for"):
        sink(path).check_schema(pa.schema([("a", pa.list_(pa.duration("us")))]))
    with pytest.raises(Permanent, match="cannot open the database") as missing:
        source(str(tmp_path / "none.db")).check()
    assert missing.value.hint and not (tmp_path / "none.db").exists()
    with pytest.raises(Permanent, match="cannot open the database"):
        sink(str(tmp_path / "none" / "x.db")).check()
    (tmp_path / "text.db").write_text("x" * 5000)
    with pytest.raises(Permanent, match="not a valid DuckDB"):
        source(str(tmp_path / "text.db")).check()
    for query in ("SELECT 1; DROP TABLE orders", "DROP TABLE orders", "SELECT no FROM orders"):
        with pytest.raises(Permanent):
            source(path, query=query).check()
    with pytest.raises(Permanent, match="Could not convert"):
        read(source(path, query="SELECT CAST(x AS INT) AS n FROM (VALUES ('b')) AS v (x)"))
    assert run(path, "SELECT count(*) FROM orders") == [(0,)]


@pytest.mark.slow
def test_a_file_that_another_process_uses(path: str) -> None:
    rows = pa.record_batch({"a": [1]})
    write(sink(path), rows)
    with another_process(path) as process:
        for call in (
            lambda: write(sink(path, timeout="50ms"), rows, 1),
            lambda: source(path, timeout="50ms").check(),
        ):
            with pytest.raises(Transient, match="could not open the database") as caught:
                call()
            assert str(process.pid) in caught.value.message and caught.value.hint
        process.communicate("")
    assert write(sink(path), rows, 1) == {}
    # A source has the file open while it reads only, and a sink from the first row to the commit.
    made = source(path)
    made.columns = made.infer_schema()
    start = made.initial_offset()
    (part,) = made.partitions(start, made.latest_offset(start))
    assert run(path, "SELECT count(*) FROM t") == [(2,)]
    batches = made.read(part, Read())
    next(batches)
    with pytest.raises(Transient):
        write(sink(path, timeout="50ms"), rows, 2)
    batches.close()  # type: ignore[attr-defined]
    assert write(sink(path), rows, 2) == {}


@pytest.mark.slow
def test_a_killed_writer(path: str) -> None:
    write(sink(path), pa.record_batch({"a": [1]}))
    with another_process(
        path, "INSERT INTO t VALUES (2); BEGIN; INSERT INTO t VALUES (3)"
    ) as other:
        other.send_signal(signal.SIGKILL)
    assert [*Path(path).parent.glob("*.wal*")]
    assert [row["a"] for row in read(source(path))[0]] == [1, 2]
    assert write(sink(path), pa.record_batch({"a": [4]}), 1) == {}
    assert [row["a"] for row in read(source(path))[0]] == [1, 2, 4]


@pytest.mark.slow
def test_new_and_changed_rows(path: str) -> None:
    run(
        path,
        "CREATE TABLE t (id INT PRIMARY KEY, changed TIMESTAMP NOT NULL)",
        "INSERT INTO t SELECT range, TIMESTAMP '2024-05-01' FROM range(3)",
    )
    by_id = source(path, watch=True, interval="1ms", max_records=2)
    by_id.columns = pa.schema([("id", pa.int64())])
    start = by_id.initial_offset()
    step = by_id.limit_batch(start, by_id.latest_offset(start))
    assert step == {"after": [1]} and by_id.lag(step, {"after": [2]}) == 1
    assert read(by_id, step)[0] == [{"id": 2}]
    by_time = source(path, cursor_columns=["changed"], watch=True, interval="1ms", min_age="1 hour")
    by_time.columns = by_id.columns
    rows, offset, _ = read(by_time)
    assert len(rows) == 3
    run(path, "INSERT INTO t VALUES (9, now())")
    run(path, "UPDATE t SET changed = now() - INTERVAL 2 HOUR WHERE id = 1")
    rows, offset, _ = read(by_time, offset)
    assert rows == [{"id": 1}]
    assert read(by_time, offset)[0] == []


@pytest.mark.slow
def test_cursors(path: str) -> None:
    run(
        path,
        "CREATE TABLE t (u UUID, ns TIMESTAMP_NS, h HUGEINT NOT NULL, s TEXT)",
        "INSERT INTO t SELECT uuid(), 'epoch', 10::HUGEINT ** 30 + range, NULL FROM range(3)",
    )
    rows, offset, _ = read(source(path, cursor_columns=["h"]))
    assert len(rows) == 3 and read(source(path, cursor_columns=["h"]), offset)[0] == []
    with pytest.raises(OptionError, match="has no primary key of one integer"):
        read(source(path, watch=True))
    with pytest.raises(Permanent, match="nanoseconds"):
        read(source(path, cursor_columns=["ns"]))
    with pytest.raises(Permanent, match="rows with null in the cursor columns s"):
        read(source(path, cursor_columns=["s"]))
    with pytest.raises(OptionError, match='t has no column "hh"'):
        source(path, cursor_columns=["hh"]).check()
    made = source(path, query="SELECT h * 2 AS twice, 1.5 AS x FROM t", cursor_columns=["twice"])
    assert [row["x"] for row in read(made)[0]] == [Decimal("1.5")] * 3


@pytest.mark.slow
def test_names_are_not_read_as_sql(path: str) -> None:
    name = "t\"; DROP TABLE x; --' ?"
    quoted = '"' + name.replace('"', '""') + '"'
    run(path, "CREATE TABLE x (id INT)", 'CREATE SCHEMA "my s"')
    schema = pa.schema([(name, pa.string()), ("where", pa.struct([(name, pa.int32())]))])
    rows = batch_of([{name: "'); DROP TABLE x; --", "where": {name: 1}}], schema)
    for table in (quoted, f'"my s".{quoted}'):
        assert not write(sink(path, [name], table=table), rows)
        made = source(path, table=table, cursor_columns=[name])
        assert read(made)[0] == rows.to_pylist()
        assert read(made, {"after": ["'); DROP TABLE y; --"]})[0] == []
    assert run(path, "SELECT count(*) FROM x") == [(0,)]


@pytest.mark.slow
def test_names_of_files(tmp_path: Path) -> None:
    for name in ("shop.v1.db", "information_schema.db", "TEMP", "main.duckdb", '.x"y'):
        path = str(tmp_path / name)
        write(sink(path), pa.record_batch({"a": [1]}))
        assert read(source(path))[0] == [{"a": 1}]


@pytest.mark.slow
def test_own_types_are_copied_or_rejected(tmp_path: Path) -> None:
    assert native.check(native_tables.duckdb(tmp_path), tmp_path) == []


@pytest.mark.slow
def test_hostile_names_and_values(path: str) -> None:
    target = hostile.Target(
        DuckdbSink, DuckdbSource, lambda name: {"path": path, "table": quoted(name)}, folds=True
    )
    assert target.rejected_columns() == {"a\0b"}
    few = replace(target, names=hostile.FEW_NAMES)
    assert few.rejected_tables() == {"a\0b"}
    target.check_values()


@pytest.mark.slow
def test_unique_indexes_of_hostile_names(path: str) -> None:
    names = [name for name in hostile.NAMES if "\0" not in name]
    run(
        path,
        f"CREATE TABLE t (n int, {', '.join(f'{quoted(name)} int' for name in names)})",
        *(f"CREATE UNIQUE INDEX i{n} ON t ({quoted(name)}, n)" for n, name in enumerate(names)),
        "CREATE UNIQUE INDEX computed ON t ((n + 1))",
    )
    with closing(sink(path).connect()) as connection:
        found = connection.unique_keys(TableName(("t",)))
    assert sorted(found) == sorted((name, "n") for name in names)
