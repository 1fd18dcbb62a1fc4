"""Rows of databases that are looked up by key, without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crossing import hostile
from penstock.connectors.clickhouse import ClickhouseSink, ClickhouseSource
from penstock.connectors.clickhouse.types import DIALECT
from penstock.connectors.clickhouse.writing import WritingConnection as WritingClickhouse
from penstock.connectors.duckdb import DuckdbSink, DuckdbSource
from penstock.connectors.duckdb.writing import WritingConnection
from penstock.connectors.jdbc import JdbcSource
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.postgres import PostgresSource
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.sqlite import SqliteSource
from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.core.errors import OptionError, PenstockError, PlanError
from penstock.sdk import BatchId, Context, LookupSource, Read, registry
from penstock.sdk.database import Connection, TableSource
from servers.drivers import MARIADB, MYSQL, driver
from servers.mariadb import MariaDb
from unit.plan.plans import memory, planned

HOSTILE = "x'; DROP TABLE t; --\\\"%s?$1"
ROWS = [(1, "a", "1.50"), (1, "A", "2.50"), (2, HOSTILE, None), (3, "", "-0.01"), (4, "ä", "9.99")]
KEYS = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMN = hostile.MARKS.replace("$", "")
Found = tuple[list[dict[str, Any]], list[tuple[str, str]]]


class Database:
    """A database, and lookups of its rows."""

    def __init__(
        self, source: type[TableSource[Any]], options: dict[str, Any],
        connect: Callable[[], Connection], table: str = "t",
    ) -> None:  # fmt: skip
        self.source, self.options, self.connect, self.table = source, options, connect, table

    def execute(self, *statements: str, parameters: Sequence[tuple[Any, ...]] = ((),)) -> None:
        with closing(self.connect()) as connection:
            for statement in statements:
                for values in parameters:
                    connection.execute(statement, values)
            connection.commit()

    def lookup(self, *key: str, **options: Any) -> LookupSource[Any]:
        config = self.source.config_type.model_validate({**self.options, **options})
        made = self.source.create(config, replace(Context(), lookup=True))
        assert isinstance(made, LookupSource)
        made.primary_key = key
        made.prepare_lookup()
        made.columns = made.infer_schema()
        return made

    def find(self, of: LookupSource[Any], keys: pa.RecordBatch) -> Found:
        """Returns the rows, and the origin and the code of each bad row."""
        read, client = Read(), of.open()
        rows = of.lookup(client, keys, read).to_pylist()
        of.close_client(client)
        return rows, [(bad.origin, bad.error.code) for bad in read.bad]


@pytest.fixture(params=["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        options: dict[str, Any] = {"path": str(tmp_path / "db")}
        yield Database(SqliteSource, options, lambda: SqliteConnection(options["path"], "rwc"))
    elif request.param == "duckdb":
        options = {"path": str(tmp_path / "db"), "table": "t"}
        config = DuckdbSink.config_type.model_validate(options)
        yield Database(DuckdbSource, {"path": options["path"]}, lambda: WritingConnection(config))
    elif request.param == "postgres":
        postgres = request.getfixturevalue("postgres")
        schema = postgres.new_schema()
        yield _server(PostgresSource, PostgresConnection, postgres.login, schema)
    elif request.param == "clickhouse":
        clickhouse = request.getfixturevalue("clickhouse")
        options = {**clickhouse.login, "table": clickhouse.new_table()}
        sink = ClickhouseSink.config_type.model_validate(options)
        yield Database(
            ClickhouseSource, clickhouse.login, lambda: WritingClickhouse(sink, DIALECT),
            options["table"],
        )  # fmt: skip
    else:
        mariadb = request.getfixturevalue("mariadb")
        yield _server(MysqlSource, MysqlConnection, mariadb.login, mariadb.new_database())


def _server(
    source: type[TableSource[Any]], connect: Callable[[Any], Connection], login: dict[str, Any],
    schema: str,
) -> Database:  # fmt: skip
    config = source.config_type.model_validate({**login, "table": "t"})
    return Database(source, login, lambda: connect(config), f"{schema}.t")


def keys(*values: tuple[Any, Any]) -> pa.RecordBatch:
    columns = zip(*values, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, KEYS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=KEYS)


def test_rows_of_keys(database: Database) -> None:
    """Values are parameters, also hostile ones. Upper and lower case differ."""
    name = database.table
    collation = " COLLATE utf8mb4_bin" if database.source is MysqlSource else ""
    engine = " ENGINE = ReplacingMergeTree" if database.source is ClickhouseSource else ""
    price = "Nullable(DECIMAL(10, 2))" if engine else "DECIMAL(10, 2)"
    database.execute(
        f"CREATE TABLE {name} (id BIGINT, name VARCHAR(50){collation}, price {price}, "
        f"PRIMARY KEY (id, name)){engine}"
    )
    with closing(database.connect()) as connection:
        values = ", ".join([connection.dialect.parameter] * 3)
    database.execute(f"INSERT INTO {name} VALUES ({values})", parameters=ROWS)
    lookup = database.lookup(table=name)
    assert lookup.declares_primary_key and lookup.infer_primary_key() == ("id", "name")
    lookup.primary_key = ("id", "name")
    asked = keys((1, "a"), (2, HOSTILE), (3, ""), (4, "ä"), (5, "a"), (2, "a"), (1, "a "))
    rows, bad = database.find(lookup, asked)
    assert bad == [] and [row["price"] for row in sorted(rows, key=lambda row: row["id"])] == [
        Decimal("1.50"), None, Decimal("-0.01"), Decimal("9.99")
    ]  # fmt: skip
    many = pa.RecordBatch.from_arrays([pa.array(range(lookup.keys_per_lookup))], names=["id"])
    query = database.lookup("id", query=f"SELECT id, count(*) AS n FROM {name} GROUP BY id")
    rows, bad = database.find(query, many)
    assert bad == [] and {row["id"]: row["n"] for row in rows} == {1: 2, 2: 1, 3: 1, 4: 1}


def test_keys_without_a_single_row(database: Database) -> None:
    """A key with several rows is bad, and one that the system rejects has at most no row."""
    name = database.table
    type_ = {PostgresSource: "UUID", DuckdbSource: "UUID"}.get(database.source, "VARCHAR(50)")
    good, twice = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    database.execute(
        f"CREATE TABLE {name} (id {type_}, n BIGINT)",
        f"INSERT INTO {name} VALUES ('{good}', 1), ('{twice}', 2), ('{twice}', 3)",
    )
    with pytest.raises(PlanError, match="has no primary key"):
        database.lookup(table=name).infer_primary_key()
    asked = pa.RecordBatch.from_pydict({"id": [good, "no uuid", twice, str(uuid.UUID(int=3))]})
    rows, bad = database.find(database.lookup("id", table=name), asked)
    assert rows == [{"id": good, "n": 1}]
    rejected = [("id=no uuid", "rejected")] if database.source is PostgresSource else []
    assert bad == [*rejected, (f"id={twice}", "several-rows")]


def test_missing_tables_and_columns(database: Database) -> None:
    """A name of a column that the table lacks is no text, and no column is null."""
    name = database.table
    engine = " ENGINE = ReplacingMergeTree" if database.source is ClickhouseSource else ""
    database.execute(
        f"CREATE TABLE {name} (id BIGINT, name VARCHAR(50), PRIMARY KEY (id)){engine}",
        f"INSERT INTO {name} VALUES (1, 'a')",
    )
    made = database.source.create(
        database.source.config_type.model_validate({**database.options, "table": f"{name}s"})
    )
    assert isinstance(made, database.source)
    with pytest.raises(OptionError, match="there is no table") as missing:
        made.infer_primary_key()
    assert missing.value.code == "unknown-table" and missing.value.option == ("table",)
    made.close()
    lookup = database.lookup("id", table=name)
    lookup.check()
    for columns, asked, column in ((["id", "nam"], "id", "nam"), (["nam", "name"], "nam", "nam")):
        lookup.columns = pa.schema([(each, pa.string()) for each in columns])
        lookup.primary_key = (asked,)
        with pytest.raises(OptionError, match=f'has no column "{column}"') as unknown:
            lookup.check()
        assert unknown.value.code == "unknown-column" and 'mean "name"' in str(unknown.value.hint)
        with pytest.raises(PenstockError, match="nam"):
            database.find(lookup, pa.RecordBatch.from_pydict({asked: ["1"]}))
        lookup.close()


def test_options_of_streams(database: Database) -> None:
    with pytest.raises(PlanError, match="watch has no meaning for a lookup table"):
        database.lookup(table="t", watch=True)
    with pytest.raises(PlanError, match="no primary key is declared"):
        database.lookup(query="SELECT 1 AS id")


def test_values_of_a_dynamic_table(database: Database, tmp_path: Path) -> None:
    """The sink of a table creates the table, and its source looks the values up."""
    type_ = {source: name for name, source in registry.importable("source")}[database.source]
    table = {
        "type": "dynamic_table", "sql": "SELECT s FROM rows", "column": COLUMN,
        "time_column": "at",
        "storage": {"type": type_, **database.options, "table": database.table},
    }  # fmt: skip
    sources = {"rows": {"type": "memory", "rows": [], "schema": "s STRING"}}
    document = {"sources": sources, "transforms": {"values": table}}
    nodes = planned(tmp_path, {**document, "sinks": {"out": memory("rows")}}).nodes
    sink, source = nodes["values_fill"].sink, nodes["values"].source
    assert isinstance(source, LookupSource)
    values = ["a", "A", "ä", "a ", "", "ss", "ß", "\U0001f600", HOSTILE]
    for number in (1, 1, 2):
        at = pa.array([datetime.now(UTC)] * len(values), pa.timestamp("us", tz="UTC"))
        rows = pa.RecordBatch.from_arrays([pa.array(values), at], names=[COLUMN, "at"])
        sink.prepare(rows.schema)
        client, batch = sink.open(), BatchId("q", number, str(number))
        writer = sink.writer(client, batch, 0, rows.schema)
        assert [*writer.write(rows)] == []
        sink.commit(batch, [writer.commit()])
        client.close()
    asked = pa.RecordBatch.from_pydict({COLUMN: [*values, "b", "Ä", "a  ", "SS"]})
    rows, bad = database.find(source.with_state(tmp_path), asked)
    assert bad == [] and sorted(row[COLUMN] for row in rows) == sorted(values)


def check_keys(database: Database, type_: str, stored: Sequence[str], asked: Sequence[Any]) -> None:
    """Each row of a table with a column `e` of a type is found, alone and beside a number."""
    name = database.table
    database.execute(
        f"CREATE TABLE {name} (e {type_}, id BIGINT)",
        *(f"INSERT INTO {name} VALUES ({value}, {n})" for n, value in enumerate(stored)),
    )
    for key, relation in product(
        (("e",), ("e", "id")), ({"table": name}, {"query": f"SELECT * FROM {name}"})
    ):
        lookup = database.lookup(*key, **relation)
        assert lookup.columns is not None
        rows = [{"e": value, "id": number} for number, value in enumerate(asked)]
        of = pa.RecordBatch.from_pylist(rows, lookup.columns).select(list(key))
        found, bad = database.find(lookup, of)
        lookup.close()
        assert bad == [] and sorted(row["id"] for row in found) == [*range(len(stored))]
        assert of.to_pylist() == [{each: found[n][each] for each in key} for n in order(found)]


def order(rows: Sequence[dict[str, Any]]) -> list[int]:
    """The places of rows by their numbers."""
    return sorted(range(len(rows)), key=lambda index: rows[index]["id"])


def noon(second: float) -> datetime:
    return datetime(2024, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=second)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("type_", "stored", "asked"),
    [
        (
            "TIMESTAMP",
            ("'2024-01-01 12:00:00'", "'2024-01-01T12:00:01Z'", "'2024-01-01 14:00:02.5+02:00'"),
            (noon(0), noon(1), noon(2.5)),
        ),
        ("DATETIME", ("'2024-01-01 12:00'", "'2024-01-01 12:00:01.000000'"), (noon(0), noon(1))),
        ("TIMESTAMP_NTZ", ("'2024-01-01 12:00:00'",), (noon(0).replace(tzinfo=None),)),
        ("DATE", ("'2024-01-01'",), (date(2024, 1, 1),)),
        ("DECIMAL_TEXT(10,2)", ("'2.5'", "'3.50'"), (Decimal("2.50"), Decimal("3.50"))),
        ("BOOLEAN", ("'true'", "0"), (True, False)),
        ("TEXT", ("CAST('a' AS BLOB)", "'b'"), ("a", "b")),
        ("BLOB", ("'a'", "x'ff'"), (b"a", b"\xff")),
    ],
)
def test_forms_of_sqlite(
    database: Database, type_: str, stored: Sequence[str], asked: Sequence[Any]
) -> None:
    check_keys(database, type_, stored, asked)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_columns_of_sqlite_without_a_type(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (e, id BIGINT)",
        "INSERT INTO t VALUES (1, 0), (1.5, 1), ('a', 2), (x'62', 3), ('2.50', 4), (1e20, 5)",
    )
    asked = pa.RecordBatch.from_pydict({"e": ["1", "1.5", "a", "b", "2.50", "1e+20", "2.5", "7_0"]})
    rows, bad = database.find(database.lookup("e", table="t"), asked)
    assert bad == [] and sorted(row["id"] for row in rows) == [*range(6)]


@pytest.mark.parametrize("database", ["mysql"], indirect=True)
@pytest.mark.parametrize(
    ("type_", "stored", "asked"),
    [
        ("BIT(8)", ("b'1'", "57"), (b"\1", b"9")),
        ("BIT(20)", ("b'1'", "70000"), (b"\0\0\1", b"\1\x11\x70")),
        ("BIT(1)", ("b'1'", "b'0'"), (True, False)),
    ],
)
def test_bits_of_mysql(
    database: Database, type_: str, stored: Sequence[str], asked: Sequence[Any]
) -> None:
    check_keys(database, type_, stored, asked)


@pytest.mark.parametrize(("package", "system"), [(MARIADB, "mariadb"), (MYSQL, "mysql")])
def test_bits_of_jdbc(mariadb: MariaDb, package: str, system: str) -> None:
    name = mariadb.new_database()
    options = {
        "url": f"jdbc:{system}://127.0.0.1:{mariadb.port}/{name}",
        "auth": mariadb.login["auth"], "jars": [driver(package)],
    }  # fmt: skip
    config = JdbcSource.config_type.model_validate({**options, "table": "t"})
    database = Database(JdbcSource, options, lambda: JdbcConnection(config))
    texts = ("b'1'", "b'111001'") if system == "mariadb" else ("1", "57")
    check_keys(database, "BIT(8)", ("b'1'", "57"), texts)
