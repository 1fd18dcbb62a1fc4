"""Types, literals, errors and options of the connector for ClickHouse, without a server."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from option_errors import Case, assert_option_error
from penstock.connectors.clickhouse.config import ClickhouseSinkConfig, ConnectionConfig
from penstock.connectors.clickhouse.declared import Declared, parse
from penstock.connectors.clickhouse.errors import translate_error
from penstock.connectors.clickhouse.literals import literal, statement
from penstock.connectors.clickhouse.tables import Engine
from penstock.connectors.clickhouse.types import DIALECT, TYPES, field_of, read_type
from penstock.connectors.clickhouse.values import invalid_rows
from penstock.core.errors import Permanent, PlanError, Rejected, Transient
from penstock.sdk.database import TableName

CONFIG = ConnectionConfig.model_validate({"url": "clickhouse://db.example/shop"})


def test_types_are_parsed() -> None:
    assert parse("LowCardinality(Nullable(String))") == Declared("String", (), nullable=True)
    assert parse("SimpleAggregateFunction(sum, Int64)") == Declared("Int64")
    assert parse("Enum8('a, b' = 1, 'it\\'s' = 2, '(' = 3)").labels == ["a, b", "it's", "("]
    tuple_ = parse("Tuple(`a b` Array(UInt8), c Decimal(3, 2))")
    assert [(name, part.name) for name, part in tuple_.parts] == [
        ("a b", "Array"), ("c", "Decimal"),
    ]  # fmt: skip
    assert [name for name, _ in parse("Tuple(Int8, Date)").parts] == ["1", "2"]


def test_types_are_read_as() -> None:
    assert read_type(parse("Array(Tuple(a Nullable(UUID), b DateTime64(3, 'UTC')))")) == (
        'Array(Tuple("a" Nullable(String), "b" DateTime64(3, \'UTC\')))'
    )
    assert read_type(parse("Map(String, Int64)")) is None
    assert read_type(parse("Nullable(DateTime('Asia/Tokyo'))")) == "Nullable(DateTime64(0, 'UTC'))"


@pytest.mark.parametrize("declared", ["Interval", "Variant(Int8, String)", "Array(Nothing)", "?"])
def test_unsupported_types(declared: str) -> None:
    with pytest.raises(PlanError, match='column "c": the type '):
        field_of("c", declared)


def test_new_tables() -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()), ('a"\\b', pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.int8())), ("at", pa.timestamp("us")),
        ]
    )  # fmt: skip
    assert DIALECT.create_table(TableName.parse("shop.t"), columns) == (
        'CREATE TABLE IF NOT EXISTS "shop"."t" ("id" Nullable(Int64), '
        '"a\\"\\\\b" Array(Nullable(String)), "m" Map(String, Nullable(Int8)), '
        "\"at\" Nullable(DateTime64(6, 'UTC'))) ENGINE = MergeTree ORDER BY () "
        "SETTINGS non_replicated_deduplication_window = 1000"
    )
    with pytest.raises(PlanError, match='column "d": ClickHouse has no type for DURATION'):
        TYPES.column_type(pa.field("d", pa.duration("us")))


def test_engines() -> None:
    engine = Engine(
        "ReplicatedReplacingMergeTree",
        "ReplicatedReplacingMergeTree('/t, (1)', '{replica}', `v 1`, d) ORDER BY (a, `b c`)",
        "a, `b c`",
    )
    assert engine.keeps_one_row and engine.replaces_by == ("v 1", "d")
    assert engine.sorting_columns == ("a", "b c")
    plain = Engine("MergeTree", "MergeTree ORDER BY toDate(at)", "toDate(at)")
    assert plain.sorting_columns == () and plain.replaces_by is None and not plain.keeps_one_row
    one = Engine("ReplacingMergeTree", "ReplacingMergeTree(v) ORDER BY (id)", "(id)")
    assert one.sorting_columns == ("id",) and one.replaces_by is None


def test_literals_have_no_end_of_their_own() -> None:
    at = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    values = ["a'b\\", None, True, 1, 0.1, Decimal("1E-3"), at, date(2024, 1, 1), b"'\xff"]
    assert [literal(value) for value in values] == [
        "'a\\'b\\\\'", "NULL", "true", "1", "0.1", "toDecimal256('0.001', 3)",
        "toDateTime64('2024-01-01 00:00:00.000000', 6, 'UTC')", "toDate32('2024-01-01')",
        "unhex('27ff')",
    ]  # fmt: skip
    assert statement("SELECT \0, \0", ("\0", "?")) == "SELECT '\0', '?'"


def test_bad_values_of_nested_columns_are_found_by_their_rows() -> None:
    type_ = pa.list_(pa.struct([("n", pa.int32())]))
    values = [None, [], [{"n": 1}], [{"n": 1}, {"n": 300}], [{"n": -1}], [{"n": None}], [None]]
    rows = pa.RecordBatch.from_arrays([pa.array(values, type_)], ["c"]).slice(1)
    target = pa.schema([field_of("c", "Array(Tuple(n UInt8))")])
    errors = invalid_rows(rows, target)
    assert {index: error.message.partition(": ")[2] for index, error in errors.items()} == {
        2: "field n: expected integers from 0 to 255",
        3: "field n: expected integers from 0 to 255",
        4: "field n: the value is null, and the column is not Nullable",
        5: "the value is null, and the column is not Nullable",
    }


def test_decimals_at_their_ends() -> None:
    values = [Decimal(2**64 - 1), Decimal(2**64), Decimal(-1), None, Decimal(10**37)]
    rows = pa.record_batch({"c": pa.array(values, pa.decimal128(38, 0))})
    assert sorted(invalid_rows(rows, pa.schema([field_of("c", "Nullable(UInt64)")]))) == [1, 2, 4]
    assert invalid_rows(rows, pa.schema([field_of("c", "Nullable(Decimal(38, 0))")])) == {}
    texts = [str(2**256 - 1), str(2**256), "-1", "007", ""]
    rows = pa.record_batch({"c": pa.array(texts)})
    assert sorted(invalid_rows(rows, pa.schema([field_of("c", "UInt256")]))) == [1, 2, 4]


@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [
        (516, Permanent, "authentication"), (497, Permanent, "authorization"),
        (164, Permanent, "authorization"), (81, Permanent, "unknown-database"),
        (62, Permanent, "rejected"), (241, Transient, "busy"), (252, Transient, "busy"),
        (202, Transient, "busy"),
        (159, Transient, "busy"), (242, Transient, "busy"), (469, Rejected, "rejected"),
    ],
)  # fmt: skip
def test_errors_by_code(code: int, kind: type[Any], name: str) -> None:
    text = (
        f"Received ClickHouse exception, code: {code}, server response: Code: {code}. "
        "DB::Exception: the reason. (NAME) (for url http://db.example:8123)"
    )
    error = translate_error(DatabaseError(text), CONFIG)
    assert isinstance(error, kind) and error.code == name
    assert "the reason" in error.message and "8123/" not in error.message.partition("reason")[2]


def test_errors_without_code() -> None:
    error = translate_error(OperationalError("Error executing HTTP request"), CONFIG)
    assert isinstance(error, Transient) and error.code == "unreachable"
    assert translate_error(ValueError("x"), CONFIG) is None


def test_ports() -> None:
    assert CONFIG.port == 8123
    secure = ConnectionConfig.model_validate({"url": "clickhouse://db/shop", "tls": True})
    assert secure.port == 8443


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "http://db/shop"}, "url", "expected clickhouse://HOST"),
        ({"url": "clickhouse://db"}, "url", "expected a database: clickhouse://HOST/DATABASE"),
        ({"compression": "gzip"}, "compression", "Input should be 'none', 'lz4' or 'zstd'"),
        ({"settings": {"a": [1]}}, "settings.a.str", "a valid string"),
    ],
)
def test_invalid_options(case: Case) -> None:
    assert_option_error(ClickhouseSinkConfig, {"url": "clickhouse://db/shop", "table": "t"}, case)


def test_times_are_instants() -> None:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert literal(at) == literal(at.replace(tzinfo=None))
