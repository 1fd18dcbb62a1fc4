"""Which writer of Kafka gets a row, so that the same one gets it when a batch is repeated."""

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


def test_at_least_once_rows_stay_where_they_are() -> None:
    assert sink(key="shop", writers=3).division(COLUMNS) is None


@pytest.mark.parametrize("key", ["shop", ["hour", "shop"]])
def test_exactly_once_a_key_has_one_writer(key: Any) -> None:
    keys = (key,) if isinstance(key, str) else tuple(key)
    assert sink(delivery="exactly_once", writers=3, key=key).division(COLUMNS) == (3, keys)


def test_without_a_key_no_column_decides_that_may_differ_in_its_last_bit() -> None:
    exact = sink(delivery="exactly_once", writers=3)
    assert exact.division(COLUMNS) == (3, ("hour", "shop"))
    assert exact.division(pa.schema([COLUMNS.field("mean")])) == (1, ())
