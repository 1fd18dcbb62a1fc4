"""Partitioning of rows among transactional writers, stable when a batch is repeated."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.kafka import KafkaSink
from penstock.sdk import Context

COLUMNS = pa.schema(
    [
        ("hour", pa.timestamp("us", tz="UTC")),
        ("shop", pa.string()),
        ("mean", pa.float64()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("parts", pa.list_(pa.struct([("share", pa.float32())]))),
    ]
)


def sink(**options: Any) -> KafkaSink:
    given = {"brokers": "localhost:1", "topic": "out", **options}
    return KafkaSink(KafkaSink.config_type.model_validate(given), Context("tests", "out"))


def test_at_least_once_rows_are_not_repartitioned() -> None:
    assert sink(key="{shop}", concurrency=3).partitioning(COLUMNS) is None


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"key": "{shop}"}, ("shop",)),
        ({"key": "{hour}/{shop}"}, ("hour", "shop")),
        ({"key_columns": ["hour", "shop"]}, ("hour", "shop")),
    ],
)
def test_exactly_once_a_key_has_one_writer(options: Any, keys: tuple[str, ...]) -> None:
    assert sink(delivery="exactly_once", concurrency=3, **options).partitioning(COLUMNS) == (
        3,
        keys,
    )


def test_without_a_key_rows_are_partitioned_by_deterministic_columns() -> None:
    exact = sink(delivery="exactly_once", concurrency=3)
    assert exact.partitioning(COLUMNS) == (3, ("hour", "shop"))
    assert exact.partitioning(pa.schema([COLUMNS.field("mean")])) == (1, ())


@pytest.mark.parametrize("key", [("shop",), ("id",), ("shop", "id")])
def test_rows_without_their_whole_primary_key_have_no_key(key: tuple[str, ...]) -> None:
    """Change events hold both images of a row, so its key may be projected away."""
    exact = sink(delivery="exactly_once", concurrency=3)
    exact.primary_key = key
    exact.check_schema(COLUMNS)
    known = "id" not in key
    assert exact.partitioning(COLUMNS) == (3, key if known else ("hour", "shop"))
    rows = pa.RecordBatch.from_pylist([{"shop": "north"}], COLUMNS)
    assert exact.mapping.fields(rows).keys == (["north"] if known else None)
