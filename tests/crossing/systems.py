"""The systems of the crossing: how a pipeline writes and reads them, and the values they hold.

A system holds all values of `crossing.wide_rows`, except for those that its tables name: `columns`
that its sink rejects before the first row, `letters`, and values that it stores in an equal form
(`changed`). Each exception has a reason in the documentation of the sink or
of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crossing.wide_rows import COLUMNS, SCHEMA, VALUES, exact, wide_rows
from servers.drivers import H2, HSQLDB, derby, driver

Options = dict[str, Any]
Texts = dict[str, dict[str, str]]
NULL = "is null"
FLOATS = ("single", "double")


@dataclass(frozen=True)
class System:
    """A system, with the options of its sink and its source for a new table or topic of a name.

    `columns` are rejected before the first row. `letters` are dead letters by the ID of the row,
    with a part of the message. `changed` has the text of an equal value by ID and text. `payloads`
    returns the messages of a system whose source takes them away, and `stored` the rows of a system
    that is no source.
    """

    name: str
    sink: Callable[[str], Options]
    source: Callable[[str], Options] | None
    columns: frozenset[str] = frozenset()
    letters: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    without_columns: frozenset[str] = frozenset()
    """Rows and columns that the server of the tests does not take, unlike the system."""
    changed: Mapping[str, str] = field(default_factory=dict)
    payloads: Callable[[str], list[bytes]] | None = None
    stored: Callable[[str], pa.Table] | None = None
    feed: Callable[[str, list[bytes]], object] | None = None
    """Sends messages to a source that receives."""
    is_exclusive: bool = False
    """Whether a process that reads it excludes all others, such as the tasks of Spark."""
    settle: Callable[[str], object] = lambda _: None
    """Makes what was written visible to readers."""

    @property
    def is_source(self) -> bool:
        """Whether pipelines can read it, and read it again."""
        if self.source is None or self.is_exclusive:
            return False
        return self.payloads is None or self.feed is not None

    @property
    def dropped(self) -> frozenset[str]:
        """The columns that are not written."""
        return self.columns | self.without_columns

    def holds(self, rows: Texts) -> Texts:
        """Returns the texts of rows (see `exact`) after their way through the system."""
        rejected = self.rejects(rows)
        return {
            id_: {
                column: self.changed.get(f"{id_} {text}", text)
                for column, text in texts.items()
                if column not in self.dropped
            }
            for id_, texts in rows.items()
            if id_ not in rejected and id_ not in self.without
        }

    def rejects(self, rows: Texts) -> dict[str, str]:
        """Returns the texts that are in the dead letters of rows, by ID, as the column's name.

        A row whose special value has been dropped is no dead letter.
        """
        return {
            id_: text
            for id_, text in self.letters.items()
            if id_ in rows and id_.partition(":")[0] in rows[id_]
        }


def ids(column: str, *values: str) -> dict[str, str]:
    """Returns the name of the column by the IDs of rows."""
    return {f"{column}: {value}": column for value in values}


def ids_of(columns: Iterable[str], *values: str) -> dict[str, str]:
    """Returns the names of several columns by the IDs of rows."""
    return {id_: name for column in columns for id_, name in ids(column, *values).items()}


def all_rows() -> Texts:
    """Returns the texts of all rows."""
    return exact(wide_rows())


MINUS_ZERO = {f"{column}: minus zero -0.0": "0.0" for column in FLOATS}
JSON_NULL = {"body: null null": "NULL"}
"""VARIANT: `null` is NULL in a message."""
NO_JSON_NUMBERS = ids_of(FLOATS, "NaN", "infinity", "minus infinity")
NESTED = frozenset(name for name, type_ in COLUMNS.items() if "<" in type_)
INTEGER_KEYS = frozenset({"rates"})
"""The map whose keys are not texts."""


def files(directory: Path, format_: str, *, name: str = "", **more: Any) -> System:
    """Returns directories of files of a format."""
    return System(
        name or format_,
        lambda name: {"type": "files", "path": str(directory / name), "format": format_},
        lambda name: {"type": "files", "path": str(directory / name / "*"), "format": format_},
        **more,
    )


def without_server(directory: Path) -> list[System]:
    """Returns the systems that need no server, in a new directory."""
    directory.mkdir()

    def database(type_: str, name: str) -> Options:
        return {"type": type_, "path": str(directory / f"{name}.{type_}"), "table": "t"}

    def delta(name: str) -> Options:
        return {"type": "delta", "path": str(directory / f"{name}.delta")}

    catalog = {"type": "sql", "path": str(directory / "catalog.db"), "warehouse": str(directory)}

    def iceberg(name: str) -> Options:
        return {"type": "iceberg", "catalog": catalog, "table": f"crossing.{name}"}

    def sqlite(name: str) -> Options:
        return database("sqlite", name)

    def duckdb(name: str) -> Options:
        return database("duckdb", name)

    return [
        files(directory / "parquet", "parquet"),
        files(directory / "arrow", "arrow"),
        files(directory / "avro", "avro", columns=INTEGER_KEYS),
        files(directory / "json", "json", changed=JSON_NULL),
        files(directory / "csv", "csv", columns=NESTED),
        System("delta", delta, delta),
        System("iceberg", iceberg, iceberg),
        System("duckdb", duckdb, duckdb),
        System("sqlite", sqlite, sqlite, changed=MINUS_ZERO),
    ]


def jdbc(directory: Path, url: str, jars: Sequence[str], **more: Any) -> System:
    """Returns tables of an embedded database, in a new directory, by its driver of JDBC."""
    directory.mkdir(parents=True, exist_ok=True)
    system = url.split(":")[1]

    def table(name: str) -> Options:
        connection = {"url": url.format(directory / system), "jars": [*jars]}
        return {"type": "jdbc", **connection, "table": name, "timeout": "20s"}

    return System(f"jdbc_{system}", table, table, is_exclusive=True, **more)


def spark(directory: Path, provider: str, read: Callable[[Path], pa.Table], **more: Any) -> System:
    """Returns directories of files that Spark writes and reads."""

    def path(name: str) -> Options:
        return {"type": "spark", "provider": provider, "path": str(directory / provider / name)}

    def stored(name: str) -> pa.Table:
        return read(directory / provider / name)

    return System(f"spark_{provider}", path, path, stored=stored, **more)


def of_java(directory: Path) -> list[System]:
    """Returns the systems that drivers and formats in Java reach, in a new directory."""
    return [
        jdbc(directory, "jdbc:h2:file:{}", [driver(H2)], changed=MINUS_ZERO),
        jdbc(directory, "jdbc:hsqldb:file:{}", [driver(HSQLDB)]),
        jdbc(
            directory,
            "jdbc:derby:{};create=true",
            derby(),
            columns=frozenset({"price", "whole"}),
            letters=dict.fromkeys(NO_JSON_NUMBERS, "outside the range"),
            changed=MINUS_ZERO,
        ),
        spark(directory, "parquet", _parquet, without_columns=frozenset({"body", "bodies"})),
    ]


def _parquet(directory: Path) -> pa.Table:
    table = pa.concat_tables(
        pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
        for file in sorted(directory.glob("*.parquet"))
    )
    return table.cast(pa.schema([SCHEMA.field(name) for name in table.column_names]))


def postgres(server: Any) -> System:
    schema = server.new_schema()

    def table(name: str) -> Options:
        return {"type": "postgres", **server.login, "table": f"{schema}.{name}"}

    return System(
        "postgres", table, table, letters=ids("text", "NUL") | ids("tags", "NUL in a key"),
    )  # fmt: skip


def mysql(server: Any) -> System:
    database = server.new_database()

    def table(name: str) -> Options:
        return {"type": "mysql", **server.login, "table": f"{database}.{name}"}

    return System(
        "mysql", table, table,
        letters=NO_JSON_NUMBERS | ids("single", "largest"), changed=MINUS_ZERO,
    )  # fmt: skip


def clickhouse(server: Any) -> System:
    prefix = server.new_table()

    def table(name: str) -> Options:
        return {"type": "clickhouse", **server.login, "table": f"{prefix}_{name}"}

    times = ("first", "last", "second before 1900", "Julian", "after 2299")
    return System(
        "clickhouse", table, table,
        letters=ids_of(("at", "local"), *times) | ids_of(NESTED, NULL) | ids("times", "extremes")
        | ids("day", "first", "last", "before 1900", "Julian", "after 2299")
        | ids("grid", "null inside") | ids("place", "nulls inside", "times", "big"),
    )  # fmt: skip


def mongodb(server: Any) -> System:
    """Returns collections of FerretDB, which is no complete MongoDB.

    It lacks Decimal128, NaN, infinities, -0.0, lists in lists, and dots in names.
    """
    prefix = server.new_collection()
    microseconds = ("last", "microsecond before 1970", "microseconds")

    def collection(name: str) -> Options:
        return {
            "type": "mongodb", **server.login, "collection": f"{prefix}_{name}", "id_column": "id",
        }  # fmt: skip

    return System(
        "mongodb", lambda name: {**collection(name), "decimals": "string"}, collection,
        columns=INTEGER_KEYS, without_columns=frozenset({"grid"}),
        letters=ids_of(("at", "local"), *microseconds) | ids("times", "extremes", "microseconds")
        | ids("place", "times") | ids("tags", "NUL in a key") | ids("body", "wide"),
        without=frozenset(
            NO_JSON_NUMBERS | ids("place", "NaN inside", "infinity inside")
            | ids("body", "list", "hostile") | ids("tags", "hostile")
        ),
        changed=MINUS_ZERO | JSON_NULL,
    )  # fmt: skip


def opensearch(server: Any) -> System:
    prefix = server.new_index()

    def index(name: str) -> Options:
        return {"type": "opensearch", "url": server.url, "index": f"{prefix}-{name}".lower()}

    objects = (value for value in VALUES["body"] if value not in ("null", "empty"))
    return System(
        "opensearch", lambda name: {**index(name), "key": "{id}"}, index,
        letters=NO_JSON_NUMBERS | ids("place", "NaN inside", "infinity inside")
        | ids("body", *objects) | ids("bodies", "objects")
        | dict.fromkeys(("tags: hostile", "body: hostile"), "field name cannot be an empty string"),
        changed=JSON_NULL,
        settle=lambda name: server.call("POST", f"/{index(name)['index']}/_refresh"),
    )  # fmt: skip


def influxdb(server: Any) -> System:
    database = server.create_database()
    rejected = NESTED | {"raw", "price", "whole"}

    def measurement(name: str) -> Options:
        return {
            "type": "influxdb", **server.login, "database": database, "measurement": name,
            "tags": ["id"],
        }  # fmt: skip

    def points(name: str) -> pa.Table:
        (series,) = server.query(f'SELECT * FROM "{name}"', database)
        rows = [dict(zip(series["columns"], values, strict=True)) for values in series["values"]]
        columns = {
            field.name: pa.array([row[field.name] for row in rows]).cast(field.type)
            for field in SCHEMA
            if field.name in series["columns"]
        }
        return pa.table(columns, schema=pa.schema([SCHEMA.field(name) for name in columns]))

    return System(
        "influxdb", measurement, None, columns=rejected, letters=NO_JSON_NUMBERS, stored=points,
    )  # fmt: skip
