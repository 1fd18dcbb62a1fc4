"""SQL and options of the systems that JDBC reaches."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock.connectors.jdbc.config import JdbcSourceConfig
from penstock.connectors.jdbc.dialects import dialect_of
from penstock.connectors.jdbc.metadata import Metadata
from penstock.connectors.jdbc.types import JdbcColumn
from penstock.core.errors import OptionError
from penstock.sdk.database import Cursor, TableName
from penstock.sdk.database.ranges import ranges_of

TABLE = TableName(("shop", "orders"))
COLUMNS = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])


def test_limits_and_comparisons_of_systems() -> None:
    server = dialect_of("sqlserver")
    assert server.limited("SELECT 1 FROM t", 5) == "SELECT TOP (5) 1 FROM t"
    assert server.add_column(TABLE, COLUMNS.field("at")).endswith('ADD "at" DATETIMEOFFSET(6)')
    for system in ("oracle", "derby", "another"):
        query, _ = Cursor('"t"', ("a", "b"), dialect_of(system)).first("*", (1, 2), 3)
        assert query.endswith("FETCH FIRST 3 ROWS ONLY") and '("a" = ? AND "b" > ?)' in query
    query, _ = Cursor('"t"', ("a", "b"), dialect_of("postgresql")).first("*", (1, 2), 3)
    assert query.endswith("LIMIT 3") and '("a", "b") > (?, ?)' in query


def test_new_tables_of_systems() -> None:
    oracle = dialect_of("oracle").create_table(TABLE, COLUMNS, ["id"])
    assert oracle == (
        'CREATE TABLE "shop"."orders" ("id" VARCHAR2(255 CHAR) NOT NULL, '
        '"at" TIMESTAMP(6) WITH TIME ZONE, PRIMARY KEY ("id"))'
    )
    assert "IF NOT EXISTS" in dialect_of("h2").create_table(TABLE, COLUMNS)
    assert dialect_of("h2").upsert(TABLE, ["id", "at"], ["id"]) == (
        'MERGE INTO "shop"."orders" ("id", "at") KEY ("id") VALUES (?, ?)'
    )
    assert "ON CONFLICT" in dialect_of("postgresql").upsert(TABLE, ["id", "at"], ["id"])
    assert dialect_of("another").update(TABLE, ["at"], ["id"]) == (
        'UPDATE "shop"."orders" SET "at" = ? WHERE "id" = ?'
    )


@pytest.mark.parametrize(
    ("code", "name", "precision", "scale", "expected"),
    [
        (2, "NUMBER", 0, -127, pa.decimal128(38, 18)),
        (2, "NUMBER", 10, -2, pa.decimal128(12, 0)),
        (3, "DECIMAL", 65, 2, pa.string()),
        (-155, "datetimeoffset", 34, 7, pa.timestamp("us", tz="UTC")),
        (-101, "TIMESTAMP WITH TIME ZONE", 0, 6, pa.timestamp("us", tz="UTC")),
        (-7, "bit", 1, 0, pa.bool_()), (-7, "BIT", 3, 0, pa.string()),
        (-6, "tinyint unsigned", 3, 0, pa.int8()), (1111, "inet", 0, 0, pa.string()),
        (-2, "UUID", 16, 0, pa.string()), (2003, "_int4", 0, 0, pa.list_(pa.int32())),
        (2009, "xml", 0, 0, pa.string()), (2004, "BLOB", 0, 0, pa.binary()),
    ],
)  # fmt: skip
def test_types_of_columns(
    code: int, name: str, precision: int, scale: int, expected: pa.DataType
) -> None:
    assert JdbcColumn("c", code, name, precision, scale, True).type == expected


def test_unsigned_numbers_are_wider() -> None:
    assert JdbcColumn("c", -6, "tinyint", 3, 0, False).type == pa.int16()
    assert JdbcColumn("c", -5, "bigint", 20, 0, False).type == pa.decimal128(20, 0)


@pytest.mark.parametrize(
    ("written", "stored", "accepted"),
    [
        (pa.int32(), pa.int64(), True), (pa.int64(), pa.int32(), False),
        (pa.int64(), pa.decimal128(19, 0), True), (pa.int64(), pa.decimal128(18, 0), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 5), False),
        (pa.decimal128(10, 2), pa.float64(), False), (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False), (pa.list_(pa.int64()), pa.string(), True),
        (pa.timestamp("us", tz="UTC"), pa.timestamp("us"), False), (pa.int64(), pa.string(), False),
    ],
)  # fmt: skip
def test_a_column_stores_all_values_of_rows(
    written: pa.DataType, stored: pa.DataType, accepted: bool
) -> None:
    types = dialect_of("postgresql").types
    assert types.accepts(pa.field("c", written), pa.field("c", stored)) is accepted


def test_points_in_time_in_a_system_without_time_zones() -> None:
    written, stored = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
    types = dialect_of("derby").types
    assert types.accepts(pa.field("c", written), pa.field("c", stored))
    assert not types.accepts(pa.field("c", stored), pa.field("c", written))


def test_ranges_of_numbers_dates_and_times() -> None:
    ranges = ranges_of(pa.field("id", pa.int64()), 4, (None, None), (1, 101))
    assert [(each.low, each.high) for each in ranges] == [
        (None, 26),
        (26, 51),
        (51, 76),
        (76, None),
    ]
    assert ranges[0].condition(dialect_of("h2")) == ('("id" < ? OR "id" IS NULL)', (26,))
    assert ranges[1].condition(dialect_of("h2")) == ('"id" >= ? AND "id" < ?', (26, 51))
    days = ranges_of(pa.field("d", pa.date32()), 2, ("2024-01-01", None), (None, date(2024, 1, 3)))
    assert days[1].low == date(2024, 1, 2)
    years = datetime(1969, 1, 1), datetime(1971, 1, 1)
    times = ranges_of(pa.field("t", pa.timestamp("us")), 2, (None, None), years)
    assert times[0].high == datetime(1970, 1, 1)
    cents = ranges_of(pa.field("n", pa.decimal128(10, 2)), 2, ("0.01", 0.02), (None, None))
    assert len(cents) == 2 and cents[0].high == Decimal("0.01")
    numbers = ranges_of(pa.field("f", pa.float64()), 2, (None, None), (0, 8))
    assert numbers[1].condition(dialect_of("h2")) == ('NOT ("f" < ?)', (4.0,))
    # Fewer values than ranges, one value, and no rows.
    assert len(ranges_of(pa.field("id", pa.int64()), 9, (None, None), (1, 3))) <= 4
    for found in ((5, 5), (None, None)):
        (all_,) = ranges_of(pa.field("id", pa.int64()), 4, (None, None), found)
        assert (all_.low, all_.high) == (None, None)


def test_columns_and_bounds_without_ranges() -> None:
    with pytest.raises(OptionError, match="expected a column of numbers"):
        ranges_of(pa.field("s", pa.string()), 2, (None, None), ("a", "b"))
    with pytest.raises(OptionError, match="expected a value of DATE, found 7"):
        ranges_of(pa.field("d", pa.date32()), 2, (7, None), (None, None))


@pytest.mark.parametrize(
    ("url", "system", "is_embedded"),
    [
        ("jdbc:oracle:thin:@//h:1521/D", "oracle", False),
        ("jdbc:oracle:thin:@tcps://h:2484/d?wallet=/a", "oracle", False),
        ("jdbc:sqlserver://h:1433;databaseName=shop", "sqlserver", False),
        ("jdbc:h2:file:/a/b", "h2", True), ("jdbc:h2:/a/b;AUTO_SERVER=TRUE", "h2", False),
        ("jdbc:h2:tcp://h/~/x", "h2", False), ("jdbc:derby:/x;create=true", "derby", True),
        ("jdbc:derby://h:1527/x", "derby", False), ("jdbc:hsqldb:hsql://h/x", "hsqldb", False),
        ("jdbc:hsqldb:file:/x", "hsqldb", True),
    ],
)  # fmt: skip
def test_urls(url: str, system: str, is_embedded: bool) -> None:
    config = JdbcSourceConfig(url=url, table="t")
    assert (config.system, config.is_embedded) == (system, is_embedded)
    assert "?" not in config.address and ";" not in config.address


@pytest.mark.parametrize(
    ("schema", "has_schemas", "place"),
    [
        ("public", None, ("c", "public", "t")),
        (None, True, ("c", None, "t")),
        (None, False, ("c", None, "t")),
    ],
)
def test_the_place_of_a_table(
    schema: str | None, has_schemas: bool | None, place: tuple[str | None, ...]
) -> None:
    """Drivers that return a schema need not have `supportsSchemasInTableDefinitions`."""
    data = SimpleNamespace()
    if has_schemas is not None:
        data.supportsSchemasInTableDefinitions = lambda: has_schemas
    client = SimpleNamespace(
        getMetaData=lambda: data, getCatalog=lambda: "c", getSchema=lambda: schema
    )
    found = Metadata(client)
    assert found._place(TableName(("t",))) == place
    qualified = found._place(TableName(("s", "t")))
    assert qualified == (("s", None, "t") if has_schemas is False else ("c", "s", "t"))
