"""Tables of PostgreSQL, written and read without Spark."""

from __future__ import annotations

import datetime as dt
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from crossing import by_hand, hostile, native, native_tables, systems
from crossing.hostile import quoted
from database_tables import read, write
from interruptions import Interruptions, check_table
from penstock.connectors.postgres import PostgresSink, PostgresSource, catalog
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import OptionError, Permanent, PlanError, Transient
from penstock.sdk import Read, compare_schemas
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.rows import batch_of
from servers.gate import Gate
from servers.postgres import PASSWORD, Postgres

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)


@pytest.fixture
def options(postgres: Postgres) -> dict[str, Any]:
    return {**postgres.login, "table": f"{postgres.new_schema()}.t"}


@pytest.fixture
def db(postgres: Postgres, options: dict[str, Any]) -> Iterator[Any]:
    """A client whose tables are those of the schema of the test."""
    schema = options["table"].partition(".")[0]
    with postgres.client(options=f"-c search_path={schema}") as client:
        yield client


def sink(options: dict[str, Any], key: Sequence[str] = (), **more: Any) -> PostgresSink:
    made = PostgresSink.create(PostgresSink.config_type.model_validate({**options, **more}))
    assert isinstance(made, PostgresSink)
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def source(options: dict[str, Any], **more: Any) -> PostgresSource:
    options = {name: value for name, value in options.items() if name not in more.get("drop", ())}
    more.pop("drop", None)
    made = PostgresSource.create(PostgresSource.config_type.model_validate({**options, **more}))
    assert isinstance(made, PostgresSource)
    made.columns = made.infer_schema()
    return made


def test_unread_rows_after_a_lost_connection(db: Any, options: dict[str, Any]) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("INSERT INTO t SELECT generate_series(1, 5)")
    made = source(options)
    with closing(made):
        start = made.initial_offset()
        end = made.latest_offset(start)
        assert made.lag(start, end) == 5
        assert made._open is not None
        pid = made._open.query("SELECT pg_backend_pid()")[0][0]
        db.execute("SELECT pg_terminate_backend(%s)", (int(pid),))
        with pytest.raises(Transient):
            made.lag(start, end)
        assert made.lag(start, end) == 5


TYPES = """
CREATE TYPE mood AS ENUM ('glad', 'so "so"');
CREATE DOMAIN cents AS numeric(12, 2);
CREATE TABLE t (
  id bigint PRIMARY KEY, small smallint, f real, d double precision, n numeric(30, 10),
  free numeric, wide numeric(78, 0), price cents, j json, b jsonb, u uuid, m mood, s varchar(20),
  c char(4), raw bytea,
  day date, at timestamptz, local timestamp(3), t time, i interval, flag boolean,
  ints integer[], texts text[], times timestamptz[], raws bytea[], amounts numeric(10, 2)[],
  net inet, span int4range, bits bit(3)
)
"""
ROW = """
INSERT INTO t VALUES (1, -32768, 'NaN', '-Infinity', 12345678901234567890.0123456789, 1.5,
  115792089237316195423570985008687907853269984665640564039457584007913129639935, 12.34,
  '{"a": 1.0}', '{"b": [1, null]}', '6f9619ff-8b86-d011-b42d-00cf4fc964ff', 'so "so"', '', 'ab',
  '\\x00ff', '2024-02-29', '2024-02-29 23:59:59.123456+00', '2024-02-29 23:59:59.123', '10:11:12.5',
  '1 day 2 hours', true, '{1,NULL,3}', '{"",NULL,"a,\\"b\\\\"}', '{2024-02-29 23:59:59.123456+00}',
  '{"\\\\x00ff"}', '{1.50}', '10.0.0.1/8', '[1,5)', B'101')
"""


def test_types_are_read_without_loss(options: dict[str, Any], db: Any) -> None:
    db.execute(TYPES)
    db.execute(ROW)
    db.execute("INSERT INTO t (id) VALUES (2)")
    of = source(options)
    rows, errors, _ = read(of)
    assert errors == []
    assert of.columns is not None
    row, nulls = rows
    assert math.isnan(row.pop("f"))
    assert row == {
        "id": 1, "small": -32768, "d": -math.inf, "n": Decimal("12345678901234567890.0123456789"),
        "free": Decimal("1.500000000000000000"), "wide": str(2**256 - 1), "price": Decimal("12.34"),
        "j": '{"a": 1.0}', "b": '{"b": [1, null]}', "u": "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        "m": 'so "so"', "s": "", "c": "ab  ", "raw": b"\x00\xff", "day": NOW.date(), "at": NOW,
        "local": dt.datetime(2024, 2, 29, 23, 59, 59, 123000), "t": "10:11:12.5", "i": "P1DT2H",
        "flag": True, "ints": [1, None, 3], "texts": ["", None, 'a,"b\\'], "times": [NOW],
        "raws": [b"\x00\xff"], "amounts": [Decimal("1.50")], "net": "10.0.0.1/8", "span": "[1,5)",
        "bits": "101",
    }  # fmt: skip
    assert set(nulls.values()) == {2, None}
    types = {field.name: field.type for field in of.columns}
    assert types["at"] == UTC and types["local"] == pa.timestamp("us")
    assert types["ints"] == pa.list_(pa.int32()) and types["n"] == pa.decimal128(30, 10)


def test_values_beyond_their_type_are_dead_letters(options: dict[str, Any], db: Any) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, day date, at timestamptz, n numeric, a int[])")
    db.execute(
        "INSERT INTO t VALUES (1, 'infinity', NULL, NULL, NULL), (2, NULL, '-infinity', 1, NULL), "
        "(3, '2024-01-01', 'epoch', 2, '{1}'), (4, '0044-03-15 BC', NULL, 1, NULL), "
        "(5, NULL, '20240-01-01', 1, NULL), (6, NULL, NULL, 'NaN', NULL), "
        "(7, NULL, NULL, 1e-30, NULL), (8, NULL, NULL, 1, '{{1,2},{3,4}}')"
    )
    rows, errors, _ = read(source(options))
    assert [row["id"] for row in rows] == [3]
    assert errors[:2] == [
        'column "day": "infinity" (STRING) is not a DATE',
        'column "at": "-infinity" (STRING) is not a TIMESTAMP',
    ]
    assert len(errors) == 7 and all("column" in error for error in errors)


def test_types_are_written_without_loss(options: dict[str, Any], db: Any) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("d", pa.float64()), ("f", pa.float32()),
            ("n", pa.decimal128(38, 18)), ("s", pa.string()), ("raw", pa.binary()),
            ("at", UTC), ("local", pa.timestamp("us")), ("day", pa.date32()), ("flag", pa.bool_()),
            ("texts", pa.list_(pa.string())), ("raws", pa.list_(pa.binary())),
            ("deep", pa.list_(pa.list_(pa.int32()))),
            ("where", pa.struct([("city", pa.string()), ("at", UTC)])),
            ("tags", pa.map_(pa.string(), pa.decimal128(10, 2))),
            json_field(pa.field("j", pa.string())),
        ]
    )  # fmt: skip
    row = {
        "id": -(2**63), "d": -0.0, "f": 0.1,
        "n": Decimal("12345678901234567890.000000000000000001"),
        "s": "\\N\t\r\n\"'%s{}", "raw": b"\\x\x00", "at": NOW, "local": NOW.replace(tzinfo=None),
        "day": dt.date(1, 1, 1), "flag": False, "texts": ["", None, 'NULL "\\{},'],
        "raws": [b"\x00", None], "deep": [[1], [], [2, 3]],
        "where": {"city": "Bern \"'", "at": NOW}, "tags": [("a", Decimal("1.50"))],
        "j": {"k": [1.5, "x"]},
    }  # fmt: skip
    nulls = {**dict.fromkeys(row), "id": 1}
    assert write(sink(options), batch_of([row, nulls], schema)) == {}
    declared = dict(db.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't' "
        "AND table_schema = current_schema()"
    ).fetchall())  # fmt: skip
    assert declared["at"] == "timestamp with time zone" and declared["texts"] == "ARRAY"
    assert {declared[name] for name in ("deep", "where", "tags", "j")} == {"jsonb"}
    of = source(options, drop=())
    of.columns = schema
    rows, errors, _ = read(of)
    assert errors == []
    by_id = {found["id"]: found for found in rows}
    f, d = by_id[row["id"]].pop("f"), by_id[row["id"]]["d"]
    assert pa.scalar(f, pa.float32()) == pa.scalar(0.1, pa.float32()) and math.copysign(1, d) < 0
    expected = {**row, "j": '{"k": [1.5, "x"]}'}
    del expected["f"]
    assert by_id[row["id"]] == expected
    assert by_id[1] == nulls


def test_rejected_rows_are_found_among_the_others(options: dict[str, Any], db: Any) -> None:
    db.execute("CREATE TABLE parent (id int PRIMARY KEY)")
    db.execute(
        "CREATE TABLE t (id int PRIMARY KEY, name varchar(3) NOT NULL CHECK (name <> 'bad'), "
        "parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED, at timestamptz(0), "
        "b jsonb)"
    )
    db.execute("CREATE UNIQUE INDEX ON t (lower(name))")
    columns = pa.schema(
        [("id", pa.int32()), ("name", pa.string()), ("parent", pa.int32()), ("at", UTC),
         json_field(pa.field("b", pa.string()))]
    )  # fmt: skip
    good = [{"id": n, "name": f"{n}"} for n in range(100)]
    bad = [
        {"id": 200, "name": None}, {"id": 201, "name": "bad"}, {"id": 202, "name": "long"},
        {"id": 203, "name": "p", "parent": 7}, {"id": 204, "name": "a\0"}, {"id": 1, "name": "x"},
        {"id": 205, "name": "t", "at": NOW}, {"id": 206, "name": "j", "b": "\0"},
    ]  # fmt: skip
    rows = batch_of(good[:50] + bad + good[50:], columns)
    failures = write(sink(options), rows)
    assert sorted(failures) == [*range(50, 58)]
    texts = list(failures.values())
    assert [any(word in texts[n] for word in words) for n, words in enumerate((
        ["null value"], ["check constraint"], ["stores 3 characters"], ["foreign key"],
        ['"name": PostgreSQL'], ["duplicate key"], ["0 digits of a fraction"], ['column "b"'],
    ))] == [True] * 8, texts  # fmt: skip
    assert db.execute("SELECT count(*) FROM t").fetchone() == (100,)


def test_upserts_and_deletes_of_composite_keys(options: dict[str, Any], db: Any) -> None:
    columns = pa.schema([("a", pa.int32()), ("select", pa.string()), ("n", pa.int64())])
    of = sink(options, ["a", "select"])
    rows = [{"a": n % 3, "select": f"{n}%s", "n": n} for n in range(9)]
    assert write(of, batch_of(rows, columns)) == {}
    changes = [{"a": 0, "select": "0%s", "n": 50}, {"a": 1, "select": "1%s"}, {"a": None}]
    failures = write(of, batch_of(changes, columns), 1, pa.array(["u", "d", "u"]))
    assert failures == {2: "expected a value in the primary key, found null in a, select"}
    # The batch is committed, so it is not written again.
    assert write(of, batch_of(rows, columns), 1) == {}
    assert db.execute('SELECT count(*), max(n), count(*) FILTER (WHERE "select" = $$1%s$$) FROM t')\
        .fetchone() == (8, 50, 0)  # fmt: skip


def test_rows_whose_key_the_table_has(options: dict[str, Any], db: Any) -> None:
    columns = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("n", pa.string())])
    schema, table = f"{options['table'].partition('.')[0]}_new", "t"
    rows = [{"id": 1, "v": 5, "n": "a"}, {"id": 2, "v": 5, "n": "a"}]
    later = [{"id": 1, "v": 4, "n": "b"}, {"id": 2, "v": 6, "n": "b"}, {"id": 3, "v": 1, "n": "b"}]
    new = {**options, "table": f"{schema}.{table}", "create_schema": True}
    assert write(sink(new, ["id"]), batch_of(rows, columns)) == {}
    query = f"SELECT id, v, n FROM {schema}.{table} ORDER BY id"
    assert write(sink(new, ["id"], on_conflict="nothing"), batch_of(later, columns), 1) == {}
    assert db.execute(query).fetchall() == [(1, 5, "a"), (2, 5, "a"), (3, 1, "b")]
    greater = sink(new, ["id"], update_where={"v": ">", "n": "<>"})
    greater.check_schema(columns)
    assert write(greater, batch_of(later, columns), 2) == {}
    assert db.execute(query).fetchall() == [(1, 5, "a"), (2, 6, "b"), (3, 1, "b")]
    for made, message in (
        (sink(new, ["id"], update_where={"w": ">"}), 'column "w"'),
        (sink(new, update_where={"v": ">"}), "without mode: upsert"),
        (sink(new, on_conflict="nothing"), "without mode: upsert"),
        (sink(new, ["id"], update_where={"v": ">"}, on_conflict="nothing"), "on_conflict: nothing"),
    ):
        with pytest.raises(PlanError, match=message):
            made.check_schema(columns)
    db.execute(f"DROP SCHEMA {schema} CASCADE")


def test_numeric_without_precision_stores_each_decimal(options: dict[str, Any], db: Any) -> None:
    db.execute("CREATE TABLE t (a numeric, b numeric(10, 2))")
    of = sink(options)
    fitting = pa.schema([("a", pa.decimal128(38, 0)), ("b", pa.decimal128(5, 1))])
    target = of.target_schema(fitting)
    assert target is not None and not compare_schemas(fitting, target)
    finer = pa.schema([("a", pa.int64()), ("b", pa.decimal128(10, 3))])
    target = of.target_schema(finer)
    assert target is not None and str(compare_schemas(finer, target)).startswith('"b" is DECIMAL')


def test_added_columns(options: dict[str, Any], db: Any) -> None:
    of = sink(options, schema_changes="apply")
    write(of, batch_of([{"id": 1}], pa.schema([("id", pa.int64())])))
    wider = pa.schema([("id", pa.int64()), ('a "b"', pa.list_(pa.float64()))])
    target = of.target_schema(wider)
    assert target is not None
    of.change_schema(compare_schemas(wider, target))
    assert write(of, batch_of([{"id": 2, 'a "b"': [0.5]}], wider), 1) == {}
    assert db.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1, None), (2, [0.5])]


def test_rows_of_transactions_that_commit_late(
    options: dict[str, Any], db: Any, postgres: Postgres
) -> None:
    """A row is not passed by if its transaction commits after a row with a greater ID."""
    db.execute("CREATE TABLE t (id bigserial PRIMARY KEY, at timestamptz DEFAULT now())")
    table = options["table"]
    of = source(options, watch=True, interval="1ms")
    with postgres.client() as late:
        late.autocommit = False
        late.execute(f"INSERT INTO {table} DEFAULT VALUES")
        db.execute("INSERT INTO t DEFAULT VALUES")
        rows, _, offset = read(of)
        assert rows == []
        late.commit()
        rows, _, offset = read(of, offset)
        assert [row["id"] for row in rows] == [1, 2]
    by_time = source(options, watch=True, interval="1ms", cursor_columns=["at"], min_age="0s")
    _, _, offset = read(by_time)
    with postgres.client() as late:
        late.autocommit = False
        late.execute("SELECT now()")
        db.execute("INSERT INTO t DEFAULT VALUES")
        assert read(by_time, offset)[0] == []
        late.execute(f"INSERT INTO {table} DEFAULT VALUES")
        late.commit()
        assert sorted(row["id"] for row in read(by_time, offset)[0]) == [3, 4]


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_table_that_is_rewritten_meanwhile(
    options: dict[str, Any], db: Any, postgres: Postgres, autocommit: bool
) -> None:
    """A query that waits for an ALTER TABLE returns the rows of the new table."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    found: list[list[Any]] = []

    def copy() -> None:
        config = PostgresSource.config_type.model_validate(options)
        with closing(PostgresConnection(config, autocommit=autocommit)) as connection:
            query = f"SELECT id FROM {options['table']} ORDER BY id"
            parts = connection.copy_rows(query, (), ["id"])
            found.append([value for part in parts for value in part["id"].to_pylist()])

    thread = threading.Thread(target=copy)
    with postgres.client() as other:
        other.autocommit = False
        other.execute(f"ALTER TABLE {options['table']} ALTER n TYPE bigint")
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'"
        while db.execute(waiting).fetchone() == (0,):
            time.sleep(0.01)
        other.commit()
    thread.join()
    assert found == [["1", "2"]]


def test_queries_are_read_by_cursor(options: dict[str, Any], db: Any) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
    db.execute("INSERT INTO t SELECT n, 'it''s 100%' || n FROM generate_series(1, 5) AS n")
    query = f"SELECT id * 2 AS twice, name, 1.5 AS x FROM {options['table']} WHERE name LIKE 'it%'"
    of = source(
        options, drop=("table",), query=query, cursor_columns=["name", "twice"], max_records=2
    )
    start = of.initial_offset()
    end = of.latest_offset(start)
    assert end == {"after": ["it's 100%5", 10]}
    step = of.limit_batch(start, end)
    assert step == {"after": ["it's 100%2", 4]}
    rows = [r for p in of.partitions(step, end) for b in of.read(p, Read()) for r in b.to_pylist()]
    assert [row["twice"] for row in rows] == [6, 8, 10]
    assert of.lag(step, end) == 3


def test_hostile_names(options: dict[str, Any], db: Any) -> None:
    table = 'x"; DROP TABLE parent; --%s\\'
    db.execute("CREATE TABLE parent (id int)")
    schema = options["table"].partition(".")[0]
    quoted = table.replace('"', '""')
    options = {**options, "table": f'{schema}."{quoted}"'}
    column = "'; DROP TABLE parent; --$1%(x)s"
    columns = pa.schema([("id", pa.int64()), (column, pa.string())])
    rows = [{"id": 1, column: "'); DROP TABLE parent; --"}]
    assert write(sink(options, ["id"]), batch_of(rows, columns)) == {}
    of = source(options, cursor_columns=[column])
    assert read(of)[0] == rows
    assert read(of, {"after": ["'); DROP TABLE parent; --", 0]})[0] == rows
    assert db.execute("SELECT count(*) FROM parent").fetchone() == (0,)


def test_errors_name_the_option(options: dict[str, Any], db: Any, postgres: Postgres) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    schema = options["table"].partition(".")[0]
    with pytest.raises(OptionError) as missing:
        source({**options, "table": f"{schema}.ordrs"})
    assert missing.value.message == f'there is no table "{schema}.ordrs"'
    assert f"{schema}.orders" in str(missing.value.hint)
    wrong = {**options, "auth": {"username": "made-up-user", "password": "secret-word"}}
    with pytest.raises(Permanent, match="authentication") as denied:
        sink(wrong).check()
    assert "secret-word" not in str(denied.value) and PASSWORD not in str(denied.value)
    with pytest.raises(Permanent, match="does not exist"):
        sink({**options, "url": f"postgresql://127.0.0.1:{postgres.port}/nowhere"}).check()
    with pytest.raises(Transient, match="could not reach"):
        sink({**options, "url": "postgresql://127.0.0.1:1/nowhere", "timeout": "2s"}).check()
    with pytest.raises(Permanent, match="SSL"):
        sink({**options, "tls": True}).check()
    with pytest.raises(PlanError, match="no type for"):
        sink(options).check_schema(pa.schema([("a", pa.duration("us"))]))


def test_privileges(options: dict[str, Any], db: Any, postgres: Postgres) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    schema = options["table"].partition(".")[0]
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"CREATE ROLE {schema} LOGIN PASSWORD '{PASSWORD}'")
    reader = {**options, "auth": {"username": schema, "password": PASSWORD}}
    db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
    with pytest.raises(Permanent, match="permission denied") as denied:
        read(source(reader))
    assert denied.value.code == "authorization"
    with pytest.raises(Permanent) as unread:
        source(reader).check()
    assert unread.value.hint == f'Run GRANT SELECT ON "{schema}"."t" TO {schema}.'
    db.execute(f"GRANT SELECT (id) ON t TO {schema}")
    source(reader).check()
    with pytest.raises(Permanent) as unwritten:
        sink(reader).check()
    assert unwritten.value.hint == f'Run GRANT INSERT ON "{schema}"."t" TO {schema}.'
    db.execute(f"GRANT SELECT ON t TO {schema}")
    assert read(source(reader))[0] == []
    rows = batch_of([{"id": 1}], pa.schema([("id", pa.int32())]))
    with pytest.raises(Permanent, match="permission denied") as no_ledger:
        write(sink(reader), rows)
    grant, _, rest = str(no_ledger.value.hint).removeprefix("Run ").partition(", or those")
    assert grant == f'GRANT USAGE, CREATE ON SCHEMA "{schema}" TO "{schema}"' and rest
    db.execute(grant)
    db.execute(f"GRANT INSERT ON t TO {schema}")
    write(sink(options), rows)
    with pytest.raises(Permanent) as of_ledger:
        sink(reader).check()
    assert of_ledger.value.hint == (
        f'Run GRANT SELECT, INSERT, UPDATE ON "{schema}"."penstock_batches" TO {schema}.'
    )


def test_locks_and_silence_end_in_time(
    options: dict[str, Any], db: Any, postgres: Postgres
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    row = batch_of([{"id": 1}], pa.schema([("id", pa.int32())]))
    with postgres.client() as other:
        other.autocommit = False
        other.execute(f"LOCK TABLE {options['table']}")
        with pytest.raises(Transient, match="statement timeout"):
            write(sink({**options, "timeout": "300ms"}), row)
    with closing(sink({**options, "timeout": "300ms"}).connect()) as connection:
        connection.client.silence = 0.2
        postgres.pause()
        try:
            with pytest.raises(Transient, match="could not reach"):
                connection.query("SELECT 1")
        finally:
            postgres.resume()
    assert write(sink(options), row) == {}


def test_deadlocks_are_transient(options: dict[str, Any], db: Any, postgres: Postgres) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    db.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    of = sink(options, ["id"])
    columns = pa.schema([("id", pa.int32()), ("n", pa.int32())])
    with postgres.client() as other, closing(of.connect()) as connection:
        other.autocommit = False
        other.execute(f"UPDATE {options['table']} SET n = 1 WHERE id = 2")
        connection.upsert(of.table, batch_of([{"id": 1, "n": 5}], columns), ["id"])

        def wait() -> None:
            with suppress(psycopg.Error):
                other.execute(f"UPDATE {options['table']} SET n = 1 WHERE id = 1")

        waiting = threading.Thread(target=wait)
        waiting.start()
        try:
            with pytest.raises(Transient):
                connection.upsert(of.table, batch_of([{"id": 2, "n": 5}], columns), ["id"])
                raise Transient("the other transaction was the victim")
        finally:
            connection.rollback()
            waiting.join()


def test_rows_of_every_type(postgres: Postgres, tmp_path: Path) -> None:
    assert by_hand.check(systems.postgres(postgres), tmp_path) == []


def test_own_types_are_copied_or_rejected(postgres: Postgres, tmp_path: Path) -> None:
    assert native.check(native_tables.postgres(postgres), tmp_path) == []


def test_hostile_names_and_values(postgres: Postgres) -> None:
    """Names of more than 63 bytes, which PostgreSQL would cut, are rejected."""
    schema = postgres.new_schema()

    def options(name: str) -> dict[str, Any]:
        return {**postgres.login, "table": f"{schema}.{quoted(name)}"}

    target = hostile.Target(PostgresSink, PostgresSource, options)
    too_long = {name for name in hostile.NAMES if len(name.encode()) > 63}
    assert target.rejected_columns() == {"a\0b", *too_long} == target.rejected_tables()
    target.check_values()


def test_a_limit_of_connections_is_transient(options: dict[str, Any], postgres: Postgres) -> None:
    """The server names the role, as it does for a missing one."""
    role = options["table"].partition(".")[0]
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 1")
    limited = {**options, "auth": {"username": role, "password": PASSWORD}}
    with (
        closing(sink(limited).connect()),
        pytest.raises(
            Transient, match=r"could not connect .* too many connections for role"
        ) as found,
    ):
        sink(limited).connect()
    assert found.value.code == "busy" and "ALTER ROLE" in str(found.value.hint)
    sink(limited).connect().close()


def test_a_read_only_server_is_transient(options: dict[str, Any], db: Any) -> None:
    """A batch is written once the server is the primary again."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    rows = batch_of([{"id": 1}], pa.schema([("id", pa.int32())]))
    of = sink(options, ["id"])
    setting = 'DATABASE "made-up shop" {} default_transaction_read_only'
    db.execute(f"ALTER {setting.format('SET')} = on")
    try:
        with pytest.raises(Transient, match="read-only transaction") as found:
            write(of, rows)
    finally:
        db.execute(f"ALTER {setting.format('RESET')}")
    assert found.value.code == "busy" and "standby" in str(found.value.hint)
    assert write(of, rows) == {} and read(source(options))[0] == [{"id": 1}]


def test_interrupted_connections(
    options: dict[str, Any], postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresConnection, "silence", 0.2)
    with Gate(postgres.port) as gate:
        check = Interruptions(gate, PASSWORD)
        check_table(check, PostgresSink, PostgresSource, check.through(options, timeout="300ms"))


def test_a_limit_of_disk_space_is_transient(options: dict[str, Any], postgres: Postgres) -> None:
    role = options["table"].partition(".")[0]
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        root.execute(f"ALTER ROLE {role} SET temp_file_limit = 0")
        root.execute(f"ALTER ROLE {role} SET work_mem = '64kB'")
    query = "SELECT id FROM generate_series(1, 100000) AS id"
    limited = {
        **options, "auth": {"username": role, "password": PASSWORD}, "cursor_columns": ["id"],
    }  # fmt: skip
    del limited["table"]
    with pytest.raises(Transient, match="temp_file_limit") as found:
        read(source(limited, query=query))
    assert found.value.code == "busy"


def test_ended_transactions_are_transient(options: dict[str, Any], postgres: Postgres) -> None:
    """The server ends a transaction that is idle for too long, and the connection."""
    with closing(sink(options).connect()) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = 500; COMMIT")
        connection.query("SELECT 1")
        with postgres.client() as other:
            ended = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
            pid = connection.client.info.backend_pid
            while other.execute(ended, (pid,)).fetchone() != (0,):
                pass
        with pytest.raises(Transient):
            connection.query("SELECT 1")


def test_the_server_does_not_compile_the_query_of_types(db: Any) -> None:
    """Checks the estimate of the costs, above which the server compiles a query."""
    ((types,),) = db.execute(
        "SELECT array_agg(oid::int8) FROM (SELECT oid FROM pg_type LIMIT 20) t"
    )
    query = catalog.STRUCTURES
    for numbers in (types, [-1] * len(types)):
        query = query.replace("\0", f"'{{{','.join(map(str, numbers))}}}'", 1)
    ((plan,),) = db.execute(f"EXPLAIN (FORMAT JSON) {query}")
    ((limit,),) = db.execute("SELECT current_setting('jit_above_cost')::float8")
    assert plan[0]["Plan"]["Total Cost"] < limit
