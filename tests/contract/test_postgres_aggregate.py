"""Aggregates of a PostgreSQL table, compared with queries of its rows."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table, write
from interruptions import Interruptions
from penstock.connectors.postgres import PostgresSink, PostgresSource
from penstock.connectors.postgres.aggregate import PostgresAggregateSink
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import OptionError, Permanent, Transient
from penstock.sdk import BatchId
from penstock.sdk.columns.rows import batch_of
from penstock.testing.contract import SinkContract
from servers.gate import Gate
from servers.postgres import PASSWORD, Postgres

ROWS = pa.schema(
    [
        ("id", pa.int64()), ("g", pa.string()), ("h", pa.int32()), ("i", pa.int64()),
        ("n", pa.decimal128(20, 3)), ("d", pa.float64()), ("t", pa.string()),
    ]
)  # fmt: skip
AGGREGATES = {
    "all rows": {"function": "count"},
    "texts": {"function": "count", "column": "t"},
    "sum_i": {"function": "sum", "column": "i"},
    "sum_n": {"function": "sum", "column": "n"},
    "sum_d": {"function": "sum", "column": "d"},
    "avg_i": {"function": "avg", "column": "i", "type": "DECIMAL(38, 10)"},
    "avg_n": {"function": "avg", "column": "n", "type": "DECIMAL(38, 10)"},
    "avg_d": {"function": "avg", "column": "d"},
    "min_i": {"function": "min", "column": "i", "type": "DECIMAL(20, 0)"},
    "max_n": {"function": "max", "column": "n"},
    "min_d": {"function": "min", "column": "d"},
    "max_d": {"function": "max", "column": "d"},
    'max "t"': {"function": "max", "column": "t"},
}
ORACLE = """
count(*), count(t), sum(i), sum(n), sum(d), avg(i)::numeric(38, 10), avg(n)::numeric(38, 10),
avg(d), min(i)::numeric(20, 0), max(n), min(d), max(d), max(t)
"""


class TestPostgresAggregateSink(SinkContract):
    """The landing table fulfills the contract of sink `postgres`."""

    component = PostgresAggregateSink
    format = None
    implementation = PostgresSink

    @pytest.fixture
    def options(self, postgres: Postgres) -> dict[str, Any]:
        schema = postgres.new_schema()
        return {
            **postgres.login, "table": f"{schema}.t", "aggregate_table": f"{schema}.a",
            "aggregates": {"rows": {"function": "count"}},
        }  # fmt: skip

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(
            rows_of_table, PostgresSource, {k: v for k, v in options.items() if "aggr" not in k}
        )


@pytest.fixture
def schema(postgres: Postgres) -> str:
    return postgres.new_schema()


@pytest.fixture
def options(postgres: Postgres, schema: str) -> dict[str, Any]:
    return {**postgres.login, "table": f"{schema}.t", "aggregate_table": f"{schema}.a"}


@pytest.fixture
def db(postgres: Postgres, schema: str) -> Iterator[Any]:
    with postgres.client(options=f"-c search_path={schema}") as client:
        yield client


def sink(options: Mapping[str, Any], key: Sequence[str] = ("id",), **more: Any) -> Any:
    made = PostgresAggregateSink.create(
        PostgresAggregateSink.config_type.model_validate({**options, **more})
    )
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)  # type: ignore[attr-defined]
    return made


def rows(*values: Sequence[Any], columns: pa.Schema = ROWS) -> pa.RecordBatch:
    return batch_of([dict(zip(columns.names, each, strict=False)) for each in values], columns)


def operations(text: str) -> pa.StringArray:
    return pa.array(list(text), pa.string())


def aggregates(db: Any, query: str = "SELECT * FROM a") -> list[tuple[Any, ...]]:
    return sorted((row[:-1] for row in db.execute(query).fetchall()), key=repr)


def expected(db: Any, groups: str) -> list[tuple[Any, ...]]:
    by = f"GROUP BY {groups}" if groups else "HAVING count(*) > 0"
    query = f"SELECT {groups + ',' if groups else ''} {ORACLE} FROM t {by}"
    return sorted(db.execute(query).fetchall(), key=repr)


def same(found: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> bool:
    """Compares rows; sums and averages of DOUBLE are exact where those of SQL are rounded."""
    approximate = [
        tuple(pytest.approx(v, abs=1e-6, nan_ok=True) if isinstance(v, float) else v for v in row)
        for row in other
    ]
    return found == approximate


def random_row(random: random.Random, key: int) -> tuple[Any, ...]:
    def some(value: Any) -> Any:
        return None if random.random() < 0.15 else value

    return (
        key, some(random.choice(["a", "", "ü'\"\\", "$$", "x" * 9000])), some(random.randrange(3)),
        some(random.choice([0, -7, 2**63 - 1, -(2**63), random.randrange(100)])),
        some(Decimal(random.randrange(-9000, 9000)).scaleb(-3)),
        some(random.choice([0.1, -0.0, 1e6, -1e6, 1e-9, random.random()] * 3
                           + [float("nan"), float("inf"), float("-inf")])),
        some(random.choice(["a", "B", "ä", ""])),
    )  # fmt: skip


@pytest.mark.parametrize("groups", ["", "g", "g,h"])
def test_random_changes(options: dict[str, Any], db: Any, groups: str) -> None:
    """Two runs, and repeated batches, of inserts, updates and deletes; then changes by others."""
    made = random.Random(f"{groups} 1")
    group_by = [name for name in groups.split(",") if name]
    for number in range(12):
        if number in (0, 6):
            of = sink(options, group_by=group_by, aggregates=AGGREGATES)
        keys = made.sample(range(30), made.randrange(1, 25))
        batch = rows(*(random_row(made, key) for key in keys))
        changes = operations("".join(made.choice("iuudd") for _ in keys))
        for _ in range(1 + number % 2):
            assert write(of, batch, number, changes) == {}
        assert same(aggregates(db), expected(db, groups)), number
    db.execute("UPDATE t SET g = 'moved', d = 0.5 WHERE id % 3 = 0")
    db.execute("DELETE FROM t WHERE id % 2 = 0")
    assert same(aggregates(db), expected(db, groups))
    db.execute("TRUNCATE t")
    assert aggregates(db) == []


def test_modes_without_a_key(options: dict[str, Any], db: Any) -> None:
    counts = {"n": {"function": "count"}, "top": {"function": "max", "column": "i"}}
    of = sink(options, (), group_by=["g"], aggregates=counts)
    write(of, rows((1, "a", 1, 5), (1, "a", 1, 5), (2, "b", 1, 1)), 0)
    assert aggregates(db) == [("a", 2, 5), ("b", 1, 1)]
    of.mode = "replace"
    write(of, rows((3, "a", 1, 4)), 1)
    write(of, rows((3, "a", 1, 4)), 1)
    assert aggregates(db) == [("a", 1, 4)]


def test_removed_values_leave_no_trace(options: dict[str, Any], db: Any) -> None:
    """Sums of DOUBLE do not depend on the order of rows, nor on rows that were removed."""
    values = {
        "s": {"function": "sum", "column": "d"}, "m": {"function": "avg", "column": "d"},
    }  # fmt: skip
    of = sink(options, aggregates=values)
    batch = rows(
        *((n, None, 1, 1, None, d, None) for n, d in enumerate([1e300, 1 / 3, float("nan"), 0.2]))
    )
    write(of, batch, 0)
    assert str(aggregates(db)) == "[(nan, nan)]"
    write(of, batch, 1, operations("didi"))
    assert aggregates(db) == [(0.5333333333333333, 0.26666666666666666)]
    write(of, rows((7, None, 1, 1, None, float("inf")), (8, None, 1, 1, None, float("-inf"))), 2)
    assert str(aggregates(db)) == "[(nan, nan)]"
    write(of, rows((8,)), 3, operations("d"))
    assert aggregates(db) == [(float("inf"), float("inf"))]
    write(of, rows((7,)), 4, operations("d"))
    assert aggregates(db) == [(0.5333333333333333, 0.26666666666666666)]


def test_overflow_is_a_bad_row(options: dict[str, Any], db: Any) -> None:
    """The other rows of the batch are written and counted."""
    total = {"s": {"function": "sum", "column": "i", "type": "SMALLINT"}}
    of = sink(options, group_by=["g"], aggregates=total)
    batch = rows((1, "a", 0, 30_000), (2, "b", 0, 1), (3, "a", 0, 30_000), (4, "a", 0, 2_767))
    failures = write(of, batch, 0)
    assert list(failures) == [2] and "out of range" in failures[2]
    assert aggregates(db) == [("a", 32_767), ("b", 1)]
    assert [row[0] for row in db.execute("SELECT id FROM t ORDER BY id")] == [1, 2, 4]


def test_concurrent_writers(options: dict[str, Any], db: Any) -> None:
    """Writers of two pipelines with the same groups and keys lose no change."""
    errors: list[Exception] = []

    def run(seed: int) -> None:
        made = random.Random(seed)
        of = sink(options, group_by=["g", "h"], aggregates=AGGREGATES)
        try:
            of.prepare(ROWS)
            with closing(of.open()) as client:
                for number in range(25):
                    keys = made.sample(range(40), 12)
                    writer = of.writer(client, BatchId(f"q{seed}", number), 0, ROWS)
                    batch = rows(*(random_row(made, key) for key in keys))
                    assert not writer.write(batch, None, operations("iiiiiiiidddd"))
                    writer.commit()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert same(aggregates(db), expected(db, "g,h"))


def test_hostile_names(options: dict[str, Any], db: Any, schema: str) -> None:
    """Names are quoted in statements, in functions and in names of triggers."""
    name = "a'\"\\$$;--${0} {x} %s ü"
    quoted = '"{}"'.format(name.replace('"', '""'))
    columns = pa.schema([("id", pa.int32()), (name, pa.int64()), ("sign", pa.string())])
    of = sink(
        {
            **options, "table": f"{schema}.{quoted}",
            "aggregate_table": f'{schema}."{"x" * 35}{quoted[1:]}',
        },
        group_by={name: "sign", "state": name},
        aggregates={
            f"{name} n": {"function": "sum", "column": name},
            "new": {"function": "min", "column": name},
            "place": {"function": "max", "column": "sign"},
        },
    )  # fmt: skip
    for number in range(2):
        write(of, rows((1, 5, "x"), (2, 6, "x"), (3, 5, "x"), columns=columns), number)
        write(of, rows((2,), columns=columns), number + 2, operations("d"))
    assert aggregates(db, f'SELECT * FROM "{"x" * 35}{quoted[1:]}') == [("x", 5, 10, 5, "x")]


def test_types_of_groups(options: dict[str, Any], db: Any) -> None:
    """Groups of dates of a timestamp in UTC; times without a value are a group."""
    columns = pa.schema([("id", pa.int32()), ("at", pa.timestamp("us", "UTC")), ("b", pa.bool_())])
    of = sink(
        options,
        group_by={
            "day": {"column": "at", "type": "DATE"},
            "flag": {"column": "b", "type": "STRING"},
        },
        aggregates={"first": {"function": "min", "column": "at", "type": "TIMESTAMP_NTZ"}},
    )
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    times = [
        None if number is None else start + dt.timedelta(microseconds=number)
        for number in (0, 86_399_999_999, None, 86_400_000_000, 5)
    ]
    flags = [True, True, None, False, True]
    write(of, rows(*zip(range(5), times, flags, strict=True), columns=columns), 0)
    write(of, rows((0,), columns=columns), 1, operations("d"))
    found = db.execute("SELECT day::text, flag, first::text FROM a ORDER BY day").fetchall()
    assert found == [
        ("1970-01-01", "true", "1970-01-01 00:00:00.000005"),
        ("1970-01-02", "false", "1970-01-02 00:00:00"), (None, None, None),
    ]  # fmt: skip


def test_groups_of_each_type(options: dict[str, Any], db: Any) -> None:
    """Equal values are one group, as in SQL: -0.0 and 0.0, NaN and NaN, null and null."""
    values: dict[str, list[Any]] = {
        "flag": [True, True], "raw": [b"\0", b"\0"], "list": [[1, None], [1, None]],
        "struct": [{"a": 1}, {"a": 1}], "day": [dt.date(2024, 2, 29)] * 2, "zero": [-0.0, 0.0],
        "nan": [float("nan")] * 2, "price": [Decimal("1.50")] * 2, "none": [None, None],
    }  # fmt: skip
    arrays = {"id": pa.array([1, 2]), **{name: pa.array(value) for name, value in values.items()}}
    arrays["none"] = pa.array([None, None], pa.string())
    batch = pa.record_batch(arrays)
    count = {"n": {"function": "count"}, "low": {"function": "min", "column": "id"}}
    of = sink(options, group_by=[*values], aggregates=count)
    assert write(of, batch.slice(0, 1), 0) == {} == write(of, batch.slice(1), 1)
    assert [row[-2:] for row in aggregates(db)] == [(2, 1)]
    write(of, batch.slice(0, 1), 2, operations("d"))
    assert [row[-2:] for row in aggregates(db)] == [(1, 2)]


def test_changed_options(options: dict[str, Any], db: Any) -> None:
    """Aggregates are computed from the landing rows again; other tables are not touched."""
    count = {"n": {"function": "count"}}
    total = {**count, "total": {"function": "sum", "column": "i"}}
    batch = rows((1, "a", 1, 5), (2, "b", 1, 7))
    write(sink(options, group_by=["g"], aggregates=count), batch, 0)
    with pytest.raises(Permanent, match='has no column "total"'):
        write(sink(options, group_by=["g"], aggregates=total), batch, 1)
    more = sink(options, group_by=["g"], aggregates=total, schema_changes="apply")
    write(more, rows((3, "a", 2, 1)), 1)
    assert db.execute("SELECT g, n, total FROM a ORDER BY g").fetchall() == [
        ("a", 2, 6),
        ("b", 1, 7),
    ]
    with pytest.raises(Permanent, match="of the type text, expected integer"):
        write(sink(options, group_by={"g": "h"}, aggregates=total), batch, 2)
    db.execute("DROP TABLE a")
    write(sink(options, group_by={"g": "h"}, aggregates=total), rows((4, "c", 2, 1)), 2)
    assert aggregates(db) == [(1, 2, 12), (2, 2, 2)]
    other = {**options, "table": options["table"] + "2"}
    with pytest.raises(Permanent, match="has the aggregates of"):
        write(sink(other, group_by={"g": "h"}, aggregates=total), batch, 3)
    db.execute("CREATE TABLE mine (n int)")
    mine = {**options, "aggregate_table": options["aggregate_table"][:-1] + "mine"}
    with pytest.raises(Permanent, match="is not an aggregate table"):
        write(sink(mine, aggregates=count), batch, 4)
    absent = {**options, "aggregate_table": options["aggregate_table"][:-1] + "absent"}
    created = sink(absent, aggregates=count, create=False)
    with pytest.raises(OptionError, match="there is no table"):
        created.check()
    with pytest.raises(OptionError, match="there is no table") as error:
        write(created, batch, 5)
    assert error.value.hint is not None and "CREATE TABLE" in error.value.hint


def test_dropped_triggers_are_replaced(options: dict[str, Any], db: Any) -> None:
    """Rows that were written meanwhile are counted."""
    of = sink(options, group_by=["g"], aggregates={"n": {"function": "count"}})
    write(of, rows((1, "a"), (2, None)), 0)
    for (name,) in db.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
    ).fetchall():
        db.execute(f'DROP FUNCTION "{name}" CASCADE')
    db.execute("INSERT INTO t (id, g) VALUES (3, 'b')")
    write(of, rows((4, "b")), 1)
    assert aggregates(db) == [("a", 1), ("b", 2), (None, 1)]
    db.execute("ALTER TABLE t DISABLE TRIGGER USER")
    db.execute("DELETE FROM t WHERE id = 1")
    write(of, rows((5, "b")), 2)
    assert aggregates(db) == [("b", 3), (None, 1)]


def test_an_old_row_is_found_by_index(options: dict[str, Any], db: Any) -> None:
    """A minimum is computed from the rows of its group only."""
    of = sink(options, group_by=["g"], aggregates={"low": {"function": "min", "column": "i"}})
    of.prepare(ROWS)
    db.execute("INSERT INTO t (id, g, i) SELECT n, n % 1000, n FROM generate_series(1, 20000) n")
    db.execute("ANALYZE t")
    db.execute("SET enable_seqscan = off")
    before = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 't'"
    db.autocommit = False
    (scanned,) = db.execute(before).fetchone()
    db.execute("DELETE FROM t WHERE id = 7")
    assert db.execute(before).fetchone() == (scanned,)
    assert db.execute("SELECT low FROM a WHERE g = '7'").fetchone() == (1007,)
    db.rollback()


def test_interrupted_connections(
    options: dict[str, Any], db: Any, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is stored and counted once."""
    monkeypatch.setattr(PostgresConnection, "silence", 0.2)
    made = random.Random(1)
    batches = [rows(*(random_row(made, key) for key in range(20))) for _ in range(9)]
    with Gate(postgres.port) as gate:
        check = Interruptions(gate, PASSWORD)
        given = check.through(options, group_by=["g"], aggregates=AGGREGATES, timeout="500ms")

        def write_batch(number: int) -> None:
            assert write(sink(given, ()), batches[number], number) == {}

        check.check_writes(write_batch)
    assert aggregates(db, 'SELECT sum("all rows"), NULL FROM a') == [(check.batches * 20,)]
    assert same(aggregates(db), expected(db, "g"))


def test_killed_server(options: dict[str, Any], postgres: Postgres) -> None:
    """A batch whose commit was interrupted is stored and counted once, before and after COMMIT."""
    total = {"n": {"function": "count"}, "s": {"function": "sum", "column": "i"}}
    with Gate(postgres.port) as gate:
        given = Interruptions(gate, PASSWORD).through(options, aggregates=total)
        of = sink(given, ())
        of.prepare(ROWS)
        for number, bytes_until_end in enumerate((1, 12)):
            batch = rows(*((key, None, None, 10**number) for key in range(3)))
            with closing(of.open()) as client:
                writer = of.writer(client, BatchId("q", number), 0, ROWS)
                assert not writer.write(batch, None)
                gate.after(bytes_until_end, gate.stop)
                with pytest.raises(Transient) as found:
                    writer.commit()
            postgres.kill()
            postgres.start()
            gate.heal()
            assert found.value.code == "unreachable"
            assert write(of, batch, number) == {} == write(of, batch, number)
    with postgres.client() as client:
        query = f"SELECT n, s, (SELECT count(*) FROM {options['table']}) FROM "
        assert client.execute(query + options["aggregate_table"]).fetchall() == [(6, 33, 6)]
