"""Tables of several databases, written and read by JDBC without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crossing import by_hand, hostile, systems
from crossing.hostile import quoted
from database_tables import read, write
from interruptions import Interruptions, check_table, ends
from penstock.connectors.jdbc import JdbcSink, JdbcSource
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.core.errors import OptionError, Permanent, Transient
from penstock.discovery import discover, pipeline_text
from penstock.sdk import BatchId, Read
from penstock.sdk.columns.rows import batch_of
from servers.certificates import Authority
from servers.drivers import H2, HSQLDB, POSTGRES, derby, driver
from servers.gate import Gate
from servers.postgres import PASSWORD, Postgres
from tls_listener import tls_listener

NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
WALL = NOW.replace(tzinfo=None)
SYSTEMS = ("h2", "hsqldb", "derby", "postgresql")


@dataclass
class Database:
    """An empty database, with options of a connection to it."""

    system: str
    options: dict[str, Any]

    def __call__(self, *statements: str) -> list[tuple[Any, ...]]:
        """Executes statements. Returns the rows of the last one if it is a query."""
        config = JdbcSink.config_type.model_validate({**self.options, "table": "t"})
        with closing(JdbcConnection(config)) as connection:
            for statement in statements[:-1]:
                connection.execute(statement)
            if statements[-1].startswith("SELECT"):
                return connection.query(statements[-1])
            connection.execute(statements[-1])
            connection.commit()
        return []

    def source(self, **options: Any) -> JdbcSource:
        given = {"table": "t", **options} if "query" not in options else options
        config = JdbcSource.config_type.model_validate({**self.options, **given})
        made = JdbcSource.create(config)
        assert isinstance(made, JdbcSource)
        made.columns = made.infer_schema()
        return made

    def sink(self, key: Sequence[str] = (), **options: Any) -> JdbcSink:
        config = JdbcSink.config_type.model_validate({**self.options, "table": "t", **options})
        made = JdbcSink.create(config)
        assert isinstance(made, JdbcSink)
        if key:
            made.mode, made.primary_key = "upsert", tuple(key)
        return made


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Database]]:
    def database(system: str) -> Database:
        match system:
            case "h2":
                url, jars = f"jdbc:h2:file:{tmp_path}/h2", [driver(H2)]
            case "hsqldb":
                url, jars = f"jdbc:hsqldb:file:{tmp_path}/hsqldb", [driver(HSQLDB)]
            case "derby":
                url, jars = f"jdbc:derby:{tmp_path}/derby;create=true", derby()
            case _:
                postgres: Postgres = request.getfixturevalue("postgres")
                schema = postgres.new_schema()
                url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/made-up%20shop"
                return Database(system, {
                    "url": f"{url}?currentSchema={schema}", "jars": [driver(POSTGRES)],
                    "auth": postgres.login["auth"],
                })  # fmt: skip
        return Database(system, {"url": url, "jars": jars})

    yield database


@pytest.fixture(params=SYSTEMS)
def db(request: pytest.FixtureRequest, make: Any) -> Database:
    return make(request.param)


def test_rows_are_upserted_deleted_and_written_once(db: Database) -> None:
    columns = pa.schema([("k", pa.string()), ("n", pa.int64()), ("text", pa.string())])

    def rows(*found: tuple[Any, ...]) -> pa.RecordBatch:
        return batch_of([dict(zip(columns.names, row, strict=True)) for row in found], columns)

    of = db.sink(["k", "n"])
    assert write(of, rows(("a", 1, "x"), ("b", 2, "y"), (None, 3, "z"))).keys() == {2}
    again = rows(("a", 1, "new"), ("b", 2, "y"), ("c", 3, "z' \"; --\n"))
    operations = pa.array(["i", "d", "i"])
    assert write(of, again, 1, operations) == {}
    assert write(of, rows(("d", 4, "repeated")), 1) == {}
    assert of.last_batch("q") == BatchId("q", 1)
    # The names of the table and of the columns differ by case in some systems.
    found, errors, _ = read(db.source(table="T" if db.system == "h2" else "t"))
    assert errors == []
    assert [tuple(row.values()) for row in found] == [("a", 1, "new"), ("c", 3, "z' \"; --\n")]
    with closing(of.open()) as client:  # a batch without commit
        of.writer(client, BatchId("q", 2), 0, columns).write(rows(("e", 5, "lost")))
    assert len(read(db.source())[0]) == 2


def test_rejected_rows_are_found_within_a_batch(db: Database) -> None:
    db("CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(5) NOT NULL)")
    columns = pa.schema([("id", pa.int32()), ("name", pa.string())])
    rows = [{"id": index, "name": "ok"} for index in range(40)]
    rows[7]["name"], rows[21]["id"] = None, 3
    failures = write(db.sink(), batch_of(rows, columns))
    assert failures.keys() == {7, 21} and "rejects the row" in failures[7]
    assert db("SELECT count(*) FROM t") == [(38,)]


def test_types_of_rows_are_stored_and_read_without_loss(db: Database) -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()), ("b", pa.bool_()), ("i8", pa.int8()), ("f", pa.float32()),
            ("d", pa.float64()), ("n", pa.decimal128(20, 6)), ("s", pa.string()),
            ("raw", pa.binary()), ("day", pa.date32()), ("at", pa.timestamp("us", tz="UTC")),
            ("wall", pa.timestamp("us")), ("tags", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )  # fmt: skip
    full = {
        "id": -(2**63), "b": True, "i8": -128, "f": 0.5, "d": 1.7976931348623157e308,
        "n": Decimal("12345678901234.567891"), "s": "é😀" * 300, "raw": b"\x00\xff" * 300,
        "day": dt.date(1, 1, 1), "at": NOW, "wall": dt.datetime(1500, 1, 1, 12),
        "tags": ["a", None], "m": [("k", 1)],
    }  # fmt: skip
    rows = [{name: full[name] for name in columns.names}, {"id": 2}]
    of = db.sink()
    batch = batch_of(rows, columns)
    assert write(of, batch) == {}
    target = of.target_schema(columns)
    assert target is not None and target.names == columns.names
    source = db.source()
    source.columns = columns
    found, errors, _ = read(source)
    assert errors == []
    expected = [{name: row.get(name) for name in columns.names} for row in rows]
    assert sorted(found, key=lambda row: row["id"]) == expected


def test_values_that_rows_do_not_have_are_dead_letters(make: Any) -> None:
    h2, postgres, derby_ = make("h2"), make("postgresql"), make("derby")
    h2(
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP(9), wide NUMERIC(60), u UUID, j JSON, "
        "xs INTEGER ARRAY, i INTERVAL DAY TO SECOND, z TIMESTAMP WITH TIME ZONE, e DECFLOAT)",
        "INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 00:00:00.123456789', NULL, NULL, NULL, "
        "NULL, NULL, NULL, NULL), (2, TIMESTAMP '2024-01-01 00:00:00.123456000', 1e59, "
        "'5d5f0b0e-0000-4000-8000-000000000001', '{\"a\": 1}' FORMAT JSON, ARRAY[1, NULL], "
        "INTERVAL '1 2:03:04.5' DAY TO SECOND, "
        "TIMESTAMP WITH TIME ZONE '2024-02-29 23:59:59.123456+02:00', 1E-30)",
    )
    rows, errors, _ = read(h2.source())
    assert len(errors) == 1 and "123456789" in errors[0]
    (row,) = rows
    assert row.pop("AT") == dt.datetime(2024, 1, 1, 0, 0, 0, 123456)
    assert row.pop("Z") == NOW - dt.timedelta(hours=2)
    assert row.pop("I").startswith("INTERVAL '1")
    assert row == {
        "ID": 2, "WIDE": "1" + "0" * 59, "U": "5d5f0b0e-0000-4000-8000-000000000001",
        "J": '{"a":1}', "XS": [1, None], "E": "1E-30",
    }  # fmt: skip
    postgres(
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMPTZ, day DATE, n NUMERIC, f REAL, j JSONB, "
        "u UUID, xs INT[], ts TIMESTAMPTZ[], b BIT(3))",
        "INSERT INTO t VALUES (1, 'infinity', NULL, 1, NULL), (2, NULL, '-infinity', 1, NULL), "
        "(3, NULL, NULL, 'NaN', NULL), (4, '0044-03-15 BC', NULL, 1, NULL), "
        "(5, '2024-02-29 23:59:59.123456Z', '2024-02-29', 1.5, 'infinity')",
        "UPDATE t SET j = '{\"a\": 1.0}', u = '5d5f0b0e-0000-4000-8000-000000000001', "
        "xs = '{1,NULL}', ts = '{2024-02-29 23:59:59.123456Z}', b = '101' WHERE id = 5",
    )
    rows, errors, _ = read(postgres.source())
    assert len(errors) == 4
    assert rows == [{
        "id": 5, "at": NOW, "day": NOW.date(), "n": Decimal("1.5"), "f": float("inf"),
        "j": '{"a": 1.0}', "u": "5d5f0b0e-0000-4000-8000-000000000001", "xs": [1, None],
        "ts": [NOW], "b": "101",
    }]  # fmt: skip
    derby_("CREATE TABLE t (seen TIMESTAMP)", "INSERT INTO t VALUES '2024-01-01 00:00:00.1234567'")
    rows, errors, _ = read(derby_.source())
    assert rows == [] and "1234567" in errors[0]


@pytest.mark.parametrize("number", range(3))
def test_rows_of_every_type(number: int, tmp_path: Path) -> None:
    system = systems.of_java(tmp_path / "data")[number]
    assert by_hand.check(system, tmp_path / "work") == []


def test_arrays_of_bytes_json_and_arrays(make: Any) -> None:
    h2 = make("h2")
    h2(
        "CREATE TABLE t (raws VARBINARY ARRAY, documents JSON ARRAY, grid INTEGER ARRAY ARRAY)",
        "INSERT INTO t VALUES (ARRAY[X'00ff', NULL], ARRAY[JSON '[1.50]', NULL], "
        "ARRAY[ARRAY[1, NULL], NULL])",
    )
    rows, errors, _ = read(h2.source())
    assert errors == []
    assert [tuple(row.values()) for row in rows] == [
        ([b"\x00\xff", None], ["[1.50]", None], ["[1, null]", None])
    ]


def test_times_that_a_column_would_round_are_rejected(make: Any) -> None:
    h2 = make("h2")
    h2("CREATE TABLE t (at TIMESTAMP(3))")
    rows = batch_of([{"at": WALL}, {"at": WALL.replace(microsecond=1000)}],
                    pa.schema([("at", pa.timestamp("us"))]))  # fmt: skip
    assert "3 digits" in write(h2.sink(), rows)[0]
    assert h2("SELECT count(*) FROM t") == [(1,)]


def test_rows_are_read_in_batches_and_ranges(db: Database) -> None:
    values = ", ".join(f"({number % 10}, {number}, DATE '2024-01-{number % 28 + 1:02}')"
                       for number in range(1, 101))  # fmt: skip
    if db.system == "derby":
        values = values.replace("DATE '", "'")
    db(
        "CREATE TABLE t (part INTEGER, id INTEGER, d DATE, PRIMARY KEY (part, id))",
        f"INSERT INTO t (part, id, d) VALUES {values}",
    )
    cursor = ["PART", "ID"] if db.system in ("h2", "hsqldb", "derby") else ["part", "id"]
    of = db.source(cursor_columns=cursor, max_records=30)
    of.columns = pa.schema([("id", pa.int32())])
    end, found, sizes = of.initial_offset(), [], []
    while (batch_end := of.limit_batch(end, of.latest_offset(end))) != end:
        rows = [row["id"] for part in of.partitions(end, batch_end)
                for batch in of.read(part, Read()) for row in batch.to_pylist()]  # fmt: skip
        assert of.lag(end, batch_end) == len(rows)
        found, sizes, end = found + rows, [*sizes, len(rows)], batch_end
    assert sizes == [30, 30, 30, 10]
    assert found == sorted(range(1, 101), key=lambda number: (number % 10, number))
    for column, more in (("id", {}), ("id", {"lower_bound": 50, "upper_bound": 60}), ("d", {})):
        of = db.source(partition_column=column, partitions=3, **more)
        parts = of.partitions(of.initial_offset(), of.latest_offset(of.initial_offset()))
        assert len(parts) == 3
        sizes = [sum(batch.num_rows for batch in of.read(part, Read())) for part in parts]
        assert sum(sizes) == 100 and all(sizes)


def test_new_rows_are_awaited_by_the_age_of_their_times(db: Database) -> None:
    db(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, seen TIMESTAMP)",
        "INSERT INTO t VALUES (1, '2024-01-01 00:00:00'), (2, '2999-01-01 00:00:00')",
    )
    seen = "SEEN" if db.system in ("h2", "hsqldb", "derby") else "seen"
    of = db.source(cursor_columns=[seen], watch=True, min_age="2s", interval="1ms")
    rows, errors, end = read(of)
    assert [next(iter(row.values())) for row in rows] == [1] and errors == []
    db("UPDATE t SET seen = '2024-01-02 00:00:00' WHERE id = 2")
    of = db.source(cursor_columns=[seen], watch=True, interval="1ms")
    assert [next(iter(row.values())) for row in read(of, end)[0]] == [2]


def test_queries_keys_and_tables(db: Database) -> None:
    db(
        "CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, amount DECIMAL(10, 2))",
        "CREATE VIEW large AS SELECT * FROM orders WHERE amount > 10",
        "INSERT INTO orders VALUES (1, 5), (2, 20.5)",
    )
    of = db.source(query="SELECT id, amount * 2 AS twice FROM orders")
    assert sorted(row.popitem()[1] for row in read(of)[0]) == [Decimal(10), Decimal(41)]
    found = discover("jdbc", {**db.options, "properties": {"Made.Up": "hidden-made-up"}})
    assert "hidden-made-up" not in pipeline_text(found) and "JDBC_MADE_UP" in pipeline_text(found)
    tables = {table.name.lower(): table for table in found.tables}
    assert tables.keys() >= {"orders", "large"}
    assert [name.lower() for name in tables["orders"].primary_key] == ["id"]
    columns = tables["orders"].columns
    assert columns is not None and [name.lower() for name in columns.names] == ["id", "amount"]
    with pytest.raises(OptionError) as caught:
        db.source(table="ordres")
    assert "orders" in str(caught.value.hint).lower()


def test_wrong_drivers_servers_and_credentials(make: Any, tmp_path: Path) -> None:
    h2, postgres = make("h2"), make("postgresql")
    h2.options["jars"] = [driver(HSQLDB)]
    with pytest.raises(Permanent, match="does not accept") as wrong:
        h2.source()
    assert H2 in str(wrong.value.hint)
    h2.options["driver"] = "org.hsqldb.jdbc.JDBCDrivr"
    with pytest.raises(OptionError, match="there is no driver") as wrong_class:
        h2.source()
    assert "org.hsqldb.jdbc.JDBCDriver" in str(wrong_class.value.hint)
    h2.options.pop("driver")
    h2.options["jars"] = []
    with pytest.raises(Permanent) as missing:
        h2.source()
    assert missing.value.code == "no-driver" and H2 in str(missing.value.hint)
    h2.options["jars"] = [str(tmp_path / "h2.jar")]
    with pytest.raises(OptionError, match="there is no file"):
        h2.source()
    postgres.options["auth"] = {"username": "nobody", "password": "hidden-made-up"}
    with pytest.raises(Permanent) as denied:
        postgres.source()
    assert denied.value.code == "authentication" and "hidden-made-up" not in str(denied.value)
    postgres.options["url"] = "jdbc:postgresql://127.0.0.1:1/shop"
    with pytest.raises(Transient) as unreachable:
        postgres.source()
    assert unreachable.value.code == "unreachable"


@pytest.mark.parametrize("system", ["h2", "hsqldb", "postgresql"])
def test_hostile_names_and_values(make: Any, system: str) -> None:
    db = make(system)
    lengths = {"h2": 256, "hsqldb": 128, "postgresql": 63}
    target = hostile.Target(
        JdbcSink, JdbcSource, lambda name: {**db.options, "table": quoted(name)}
    )
    too_long = {
        name
        for name in hostile.NAMES
        if len(name.encode() if system == "postgresql" else name) > lengths[system]
    }
    assert target.rejected_columns() == {"a\0b", *too_long}
    few = replace(target, names=(*hostile.FEW_NAMES, "x" * 300))
    assert few.rejected_tables() == {"a\0b", "x" * 300}
    target.check_values()


def test_interrupted_connections(
    make: Any, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.jdbc.driver.SILENCE", 0.2)
    with Gate(postgres.port) as gate:
        check = Interruptions(gate, PASSWORD)
        given = check.through(make("postgresql").options, table="t", timeout="1s")
        check_table(check, JdbcSink, JdbcSource, given, looks_up=False)


def test_a_login_without_a_response_is_transient(make: Any, postgres: Postgres) -> None:
    request_of_tls_and_answer = 8 + 1
    with Gate(postgres.port) as gate:
        db = make("postgresql")
        db.options = Interruptions(gate, PASSWORD).through(db.options, timeout="1s")
        gate.after(request_of_tls_and_answer, gate.pause)
        with pytest.raises(Transient, match="attempt timed out"):
            ends(lambda: db("SELECT 1"))


def test_a_limit_of_connections_is_transient(make: Any, postgres: Postgres) -> None:
    other, db, role = make("postgresql"), make("postgresql"), postgres.new_schema()
    other("CREATE TABLE t (a int)")
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 1")
    with postgres.client() as owner:
        owner.execute(f"GRANT USAGE, CREATE ON SCHEMA {role} TO {role}")
    db.options["auth"] = {"username": role, "password": PASSWORD}
    of = db.sink()
    with postgres.client(role), pytest.raises(Transient, match="too many connections") as found:
        of.check()
    assert found.value.code == "busy" and "ALTER ROLE" in str(found.value.hint)
    of.check()


def test_tls(make: Any, tmp_path: Path) -> None:
    """A certificate that is not trusted ends the query; a lost connection is tried again."""
    db = make("postgresql")
    factory = "org.postgresql.ssl.DefaultJavaSSLFactory"
    authority = Authority(tmp_path)
    certificate = authority.issue("server")
    trusted = {"sslmode": "verify-full", "sslrootcert": str(authority.root)}
    cases: list[tuple[str, Path | None, dict[str, str], type[Exception], str]] = [
        ("127.0.0.1", certificate, {"sslfactory": factory}, Permanent, "CA certificate"),
        ("127.0.0.1", None, {"sslfactory": factory}, Transient, "running"),
        ("127.0.0.2", certificate, trusted, Permanent, "host name"),
    ]
    for host, shown, properties, kind, hint in cases:
        db.options["properties"] = {"ssl": "true", **properties}
        with tls_listener(shown, asks=True) as port:
            db.options["url"] = f"jdbc:postgresql://{host}:{port}/shop"
            with pytest.raises(kind) as found:
                db.source()
        error: Any = found.value
        assert error.code == ("tls" if kind is Permanent else "unreachable") and hint in error.hint
