"""Tables read in the order of a key, whose types databases sort and compare differently."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.connectors.clickhouse import ClickhouseSource
from penstock.connectors.duckdb import DuckdbSource
from penstock.connectors.jdbc import JdbcSource
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.postgres import PostgresSource
from penstock.connectors.sqlite import SqliteSource
from penstock.core.errors import OptionError, Permanent, StateError
from penstock.sdk import Context, Read
from penstock.sdk.database.cursor import OtherTime, encode
from servers.clickhouse import ClickHouse
from servers.drivers import MARIADB, MYSQL, driver
from servers.mariadb import MariaDb
from servers.postgres import Postgres

MEMBERS = ("'z'", "'m'", "'a'")
"""The members of an ENUM, in an order which is not that of their texts."""


UUIDS = tuple(f"'{first}-e89b-12d3-a456-{last}'" for first, last in (
    ("00000000", "ff6655440000"), ("ff000000", "000000000000"), ("70000000", "a00000000001")
))  # fmt: skip


TIMES = ("'infinity'", "'-infinity'", "'2024-01-01'", "'0044-03-15 (BC)'", "'20000-01-01'")
"""Times of DuckDB, of which Python has one."""


def inserts(values: tuple[str, ...], table: str = "t") -> list[str]:
    """Statements that insert two rows for each value, with the numbers 0 to 2 * n - 1."""
    numbers = range(2 * len(values))
    return [f"INSERT INTO {table} VALUES ({values[n // 2]}, {n})" for n in numbers]


def check_pages(source_type: Any, options: dict[str, Any], count: int, bad: int = 0) -> None:
    """Reads the rows of a table up to its end, at once and by pages: each is read once.

    `bad` is the number of rows that become dead letters.
    """
    for limit in ({}, {"max_records": 1}, {"max_records": 3}):
        config = source_type.config_type.model_validate({**options, **limit})
        of = source_type.create(config)
        with closing(of):
            of.columns = of.infer_schema()
            start = of.initial_offset()
            end, found = of.find_end(start), Read()
            numbers: list[int] = []
            while start != end:
                stop = of.limit_batch(start, end)
                assert stop != start, f"no progress after {start}"
                numbers += [
                    row["id"]
                    for part in of.partitions(start, stop)
                    for batch in of.read(part, found)
                    for row in batch.to_pylist()
                ]
                start = stop
        lost = [json.loads(each.payload)["id"] for each in found.bad]
        assert (sorted(numbers + lost), len(lost)) == ([*range(count)], bad)


@pytest.mark.parametrize("is_jdbc", [False, True])
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("ENUM('z', 'm', 'a')", MEMBERS),
        ("SET('z', 'm', 'a')", ("'z,a'", *MEMBERS)),
        ("BIT(8)", ("b'1'", "57", "b'11111111'")),
        ("BIT(1)", ("b'0'", "b'1'")),
        ("FLOAT", ("0.1", "0.7", "-3.3")),
    ],
)
def test_mysql(mariadb: MariaDb, type_: str, values: tuple[str, ...], is_jdbc: bool) -> None:
    name = mariadb.new_database()
    with mariadb.client(database=name) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (e {type_}, id int, PRIMARY KEY (e, id))")
        for statement in inserts(values):
            cursor.execute(statement)
    url = f"jdbc:mariadb://127.0.0.1:{mariadb.port}/{name}"
    by_jdbc = {"url": url, "auth": mariadb.login["auth"], "jars": [driver(MARIADB)], "table": "t"}
    options = by_jdbc if is_jdbc else {**mariadb.login, "table": f"{name}.t"}
    source_type = JdbcSource if is_jdbc else MysqlSource
    check_pages(source_type, options, 2 * len(values))
    if type_.startswith(("ENUM", "SET", "BIT")):
        queries = () if is_jdbc else ({"query": f"SELECT * FROM {name}.t"},)
        for relation in ({"table": options["table"]}, *queries):
            options = {**options, "cursor_columns": ["e"]}
            options.pop("table", None)
            config = source_type.config_type.model_validate({**options, **relation})
            with closing(source_type.create(config)) as of:
                with pytest.raises(OptionError, match='not sorted by the column "e"') as error:
                    of.check()
                assert error.value.code == "cursor-type"


@pytest.mark.parametrize(("package", "system"), [(MARIADB, "mariadb"), (MYSQL, "mysql")])
@pytest.mark.parametrize("type_", ["TIMESTAMP(6)", "DATETIME(6)"])
def test_microseconds_of_mysql(mariadb: MariaDb, type_: str, package: str, system: str) -> None:
    """The driver of MySQL drops microseconds of times that it sends to MariaDB."""
    name = mariadb.new_database()
    with mariadb.client(database=name) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (e {type_}, id int, PRIMARY KEY (e, id))")
        for statement in inserts(tuple(f"'2024-01-01 10:00:0{n}.123456'" for n in range(3))):
            cursor.execute(statement)
        client.commit()
    options = {
        "url": f"jdbc:{system}://127.0.0.1:{mariadb.port}/{name}", "table": "t",
        "auth": mariadb.login["auth"], "jars": [driver(package)],
    }  # fmt: skip
    check_pages(JdbcSource, options, 6)
    times = [datetime(2024, 1, 1, 10, 0, number // 2, 123456) for number in range(6)]
    rows = pa.RecordBatch.from_pydict({"e": times, "id": [*range(6)]})
    config = JdbcSource.config_type.model_validate(options)
    lookup = JdbcSource.create(config, replace(Context(), lookup=True))
    lookup.primary_key, lookup.columns = ("e", "id"), lookup.infer_schema()
    with closing(lookup):
        assert lookup.lookup(lookup.open(), rows, Read()).num_rows == 6


def test_no_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"path": str(tmp_path / "shop.duckdb"), "table": "t"}
    with duckdb.connect(options["path"]) as db:
        db.execute("CREATE TABLE t AS SELECT 0.1 AS e FROM range(3)")
    config = {**options, "cursor_columns": ["e"], "max_records": 1}
    of = DuckdbSource.create(DuckdbSource.config_type.model_validate(config))
    start = {"after": encode((Decimal("0.1"),))}
    with closing(of):
        assert of._cursor.columns == ("e",)
        monkeypatch.setattr(of._connection, "query", lambda *_: [(Decimal("0.1"),)])
        with pytest.raises(Permanent, match="end at the same position"):
            of.limit_batch(start, {"after": encode((Decimal("0.2"),))})
        assert of.limit_batch(start, start) == start


@pytest.mark.parametrize(
    ("type_", "values"),
    [("uuid", UUIDS), ("inet", ("'10.0.0.1'", "'9.0.0.0/8'", "'::1'")), ("cidr", ("'9.0.0.0/8'",))],
)
def test_postgres_addresses(postgres: Postgres, type_: str, values: tuple[str, ...]) -> None:
    schema = postgres.new_schema()
    with postgres.client(options=f"-c search_path={schema}") as db:
        db.execute(f"CREATE TABLE t (e {type_}, id int, PRIMARY KEY (e, id))")
        for statement in inserts(values):
            db.execute(statement)
    check_pages(PostgresSource, {**postgres.login, "table": f"{schema}.t"}, 2 * len(values))


@pytest.mark.parametrize("type_", ["real", "double precision"])
def test_postgres(postgres: Postgres, type_: str) -> None:
    schema = postgres.new_schema()
    values = ("0.1", "0.7", "-3.3", "'NaN'", "'Infinity'", "'-Infinity'")
    for name, stored in (("finite", values[:3]), ("t", values), ("least", ("-3.3", "0.1"))):
        with postgres.client(options=f"-c search_path={schema}") as db:
            db.execute(f"CREATE TABLE {name} (e {type_}, id int, PRIMARY KEY (e, id))")
            for statement in inserts(stored, name):
                db.execute(statement)
        check_pages(
            PostgresSource, {**postgres.login, "table": f"{schema}.{name}"}, 2 * len(stored)
        )


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("Enum8('z' = 1, 'm' = 2, 'a' = 3)", MEMBERS),
        ("Int256", ("1", "20", "-3")),
        ("Decimal(76, 10)", ("1.5", "20", "-3")),
        ("Float32", ("0.1", "nan", "0.7", "inf")),
        ("Float64", ("nan", "0.1")),
        ("LowCardinality(String)", MEMBERS),
        ("UUID", UUIDS),
        ("IPv4", ("'10.0.0.1'", "'9.0.0.1'")),
        ("IPv6", ("'::1'", "'fe80::'")),
    ],
)
def test_clickhouse(clickhouse: ClickHouse, type_: str, values: tuple[str, ...]) -> None:
    table = clickhouse.new_table()
    clickhouse(
        f"CREATE TABLE shop.{table} (e {type_}, id Int32) ENGINE = MergeTree ORDER BY (e, id)",
        *inserts(values, f"shop.{table}"),
    )
    check_pages(ClickhouseSource, {**clickhouse.login, "table": table}, 2 * len(values))


@pytest.mark.parametrize("type_", ["String", "LowCardinality(String)", "FixedString(3)"])
@pytest.mark.parametrize("texts", [("'é'", "unhex('FFFE41')"), ("unhex('FFFE41')", "'é'", "'zz'")])
def test_clickhouse_bytes(clickhouse: ClickHouse, type_: str, texts: tuple[str, ...]) -> None:
    table = clickhouse.new_table()
    clickhouse(
        f"CREATE TABLE shop.{table} (e {type_}, id Int32) ENGINE = MergeTree ORDER BY (e, id)",
        *inserts(texts, f"shop.{table}"),
    )
    is_text = type_ != "FixedString(3)"
    check_pages(ClickhouseSource, {**clickhouse.login, "table": table}, 2 * len(texts), 2 * is_text)


@pytest.mark.parametrize(("type_", "values"), [("ENUM ('z', 'm', 'a')", MEMBERS), ("UUID", UUIDS)])
def test_duckdb(tmp_path: Path, type_: str, values: tuple[str, ...]) -> None:
    options = {"path": str(tmp_path / "shop.duckdb"), "table": "t"}
    with duckdb.connect(options["path"]) as db:
        db.execute(f"CREATE TABLE t (e {type_}, id int, PRIMARY KEY (e, id))")
        for statement in inserts(values):
            db.execute(statement)
    check_pages(DuckdbSource, options, 6)
    if type_ == "UUID":
        return
    config = DuckdbSource.config_type.model_validate({**options, "cursor_columns": ["e"]})
    of = DuckdbSource.create(config)
    with closing(of), pytest.raises(OptionError, match='not sorted by the column "e"'):
        of.check()


@pytest.mark.parametrize(
    "type_", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS"]
)
def test_duckdb_times_that_python_does_not_have(tmp_path: Path, type_: str) -> None:
    options = {"path": str(tmp_path / "shop.duckdb")}
    for name, values in (("t", TIMES), ("late", TIMES[:3]), ("early", TIMES[1:])):
        with duckdb.connect(options["path"]) as db:
            db.execute(f"CREATE TABLE {name} (e {type_}, id int, PRIMARY KEY (e, id))")
            for statement in inserts(values, name):
                db.execute(statement)
        check_pages(DuckdbSource, {**options, "table": name}, 2 * len(values), 2 * len(values) - 2)
        check_pages(
            DuckdbSource, {**options, "table": name, "cursor_columns": ["e"]},
            2 * len(values), 2 * len(values) - 2,
        )  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        (OtherTime("DATE", "-infinity"), date(2024, 1, 1), OtherTime("DATE", "infinity")),
        ("z", "é", b"\xff"),
    ],
)
def test_the_least_offset_of_values_of_several_types(values: tuple[Any, ...]) -> None:
    with_table = {"path": "shop.duckdb", "table": "t"}
    of = DuckdbSource.create(DuckdbSource.config_type.model_validate(with_table))
    offsets = [{"after": encode((value, 1))} for value in values]
    for index, first in enumerate(offsets):
        for second in offsets[index:]:
            assert of.min_offset(first, second) == of.min_offset(second, first) == first


def test_sqlite_texts_that_are_not_utf8(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "shop.db"), "table": "t"}
    with closing(sqlite3.connect(options["path"])) as db:
        db.execute("CREATE TABLE t (e text, id int, PRIMARY KEY (e, id)) WITHOUT ROWID")
        for statement in inserts(("'a'", "CAST(x'FF41' AS text)")):
            db.execute(statement)
        db.commit()
    with pytest.raises(Permanent, match="a column with texts that are not UTF-8") as error:
        check_pages(SqliteSource, options, 4, 2)
    assert error.value.code == "cursor-type"


def check_former_position(source_type: Any, options: dict[str, Any]) -> None:
    """A position of an earlier version, with the columns (e, id), is an error from each side.

    `table` has the primary key (e, id), and `enums` has the primary key (e).
    """
    for table in ("t", "enums"):
        config = source_type.config_type.model_validate({**options, "table": table})
        former = {"after": ["z", 1] if table == "t" else ["z"]}
        for read in (
            lambda of, former=former: of.find_end(former),
            lambda of, former=former: of.partitions(of.initial_offset(), former),
            lambda of, former=former: of.partitions(former, of.find_end(of.initial_offset())),
        ):
            with closing(source_type.create(config)) as of:
                of.columns = of.infer_schema()
                with pytest.raises(StateError, match=f"cannot resume reading {table}") as error:
                    read(of)
                assert error.value.code == "changed-order" and "--fresh" in str(error.value.hint)


def test_former_positions_of_duckdb(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "shop.duckdb")}
    with duckdb.connect(options["path"]) as db:
        db.execute("CREATE TABLE t (e ENUM ('z', 'm', 'a'), id int, PRIMARY KEY (e, id))")
        db.execute("CREATE TABLE enums (e ENUM ('z', 'm', 'a') PRIMARY KEY)")
        db.execute("INSERT INTO t VALUES ('z', 1), ('a', 2)")
        db.execute("INSERT INTO enums VALUES ('z'), ('a')")
    check_former_position(DuckdbSource, options)


@pytest.mark.parametrize("is_jdbc", [False, True])
def test_former_positions_of_mysql(mariadb: MariaDb, is_jdbc: bool) -> None:
    name = mariadb.new_database()
    with mariadb.client(database=name) as client, client.cursor() as cursor:
        cursor.execute("CREATE TABLE t (e ENUM('z', 'm', 'a'), id int, PRIMARY KEY (e, id))")
        cursor.execute("CREATE TABLE enums (e ENUM('z', 'm', 'a') PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES ('z', 1), ('a', 2)")
        cursor.execute("INSERT INTO enums VALUES ('z'), ('a')")
        client.commit()
    if is_jdbc:
        url = f"jdbc:mariadb://127.0.0.1:{mariadb.port}/{name}"
        auth, jars = mariadb.login["auth"], [driver(MARIADB)]
        check_former_position(JdbcSource, {"url": url, "auth": auth, "jars": jars})
    else:
        url = f"mysql://127.0.0.1:{mariadb.port}/{name}"
        check_former_position(MysqlSource, {**mariadb.login, "url": url})


def test_a_position_before_a_key_was_added(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "shop.duckdb"), "table": "t"}
    with duckdb.connect(options["path"]) as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    of = DuckdbSource.create(DuckdbSource.config_type.model_validate(options))
    with closing(of), pytest.raises(StateError, match="a position without columns"):
        of.find_end({"after": []})
