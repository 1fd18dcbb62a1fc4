"""Tables with the own types of PostgreSQL, MySQL, ClickHouse and DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossing.native import Column, Tables
from crossing.native_columns import CLICKHOUSE, DUCKDB, MYSQL, POSTGRES
from servers.clickhouse import DATABASE


def postgres(server: Any, schema: str | None = None) -> Tables:
    schema = schema or server.new_schema()

    def query(statement: str) -> Sequence[tuple[Any, ...]]:
        with server.client(options=f"-c search_path={schema} -c timezone=UTC") as client:
            found = client.execute(statement.replace("%", "%%"))
            return found.fetchall() if found.description else []

    query("CREATE TYPE mood AS ENUM ('glad', 'so \"so\"', '')")
    query("CREATE TYPE pair AS (a integer, b text)")
    query("CREATE DOMAIN cents AS numeric(10,2) CHECK (VALUE >= 0)")
    query("CREATE DOMAIN whole_cents AS cents")
    query("CREATE DOMAIN cent_lists AS cents[]")
    query("CREATE DOMAIN pair_domain AS pair CHECK ((VALUE).a > 0)")
    query(
        "CREATE TYPE fine_pair AS (a numeric(10,2), b varchar(3), c pair, d cents[], e tsrange, "
        "f date, g real, h interval, i pair[])"
    )
    query("CREATE EXTENSION IF NOT EXISTS hstore SCHEMA public")
    return _tables(
        POSTGRES, query, {"type": "postgres", **server.login}, f"{schema}.",
        lambda name: f"{name}::text",
    )  # fmt: skip


def mysql(server: Any) -> Tables:
    database = server.new_database()

    def query(statement: str) -> Sequence[tuple[Any, ...]]:
        with server.client() as client, client.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
            cursor.execute(statement)
            return list(cursor.fetchall())

    return _tables(
        MYSQL, query, {"type": "mysql", **server.login}, f"{database}.",
        lambda name: f"HEX({name})" if name in ("bits", "place") else f"CAST({name} AS CHAR)",
    )  # fmt: skip


def clickhouse(server: Any) -> Tables:
    return _tables(
        CLICKHOUSE, server, {"type": "clickhouse", **server.login},
        f"{DATABASE}.{server.new_table()}_", lambda name: f"toString({name})",
        "(id String, {}) ENGINE = MergeTree ORDER BY id",
    )  # fmt: skip


def duckdb(directory: Path) -> Tables:
    import duckdb as client

    path = str(directory / "native.duckdb")

    def query(statement: str) -> Sequence[tuple[Any, ...]]:
        with client.connect(path) as connection:
            connection.execute("SET timezone = 'UTC'")
            return connection.execute(statement).fetchall()

    return _tables(
        DUCKDB, query, {"type": "duckdb", "path": path}, "", lambda name: f"{name}::VARCHAR"
    )


def _tables(
    columns: Mapping[str, Column],
    query: Callable[[str], Sequence[tuple[Any, ...]]],
    login: Mapping[str, Any],
    prefix: str,
    text: Callable[[str], str],
    definition: str = "(id varchar(100) NOT NULL, {})",
) -> Tables:
    """Creates both tables."""
    written = ", ".join(f"{name} {column.type}" for name, column in columns.items())
    names = [f"{prefix}native", f"{prefix}copied"]
    for name in names:
        query(f"CREATE TABLE {name} " + definition.format(written))
    full, empty = ({**login, "table": name} for name in names)
    return Tables(query, full, empty, text, columns)
