"""Times have the same text everywhere: in JSON, CSV, templates, keys, tables and dead letters."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from penstock.connectors.kafka.config import KafkaSinkConfig
from penstock.connectors.kafka.records import RecordMapping
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.sdk.columns.display import json_of, leaf_text
from penstock.sdk.columns.row_json import row_payload
from penstock.sdk.columns.template import Template

NOON = dt.datetime(2024, 1, 2, 12)
SECOND, DAY = 1_000_000, 86_400_000_000
YEAR_10000 = 253_402_300_800 * SECOND
MICROSECONDS = [
    0, 500_000, 120_000, 123_456, 10, -1, 12 * 3600 * SECOND, YEAR_10000 - 1, YEAR_10000,
    YEAR_10000 + 500_000, -719_162 * DAY, -719_528 * DAY, -730_000 * DAY + 1000,
]  # fmt: skip
"""Times of several precisions, and of the years 1970, 9999, 10000, 1, 0 and -28."""
Texts = Callable[[pa.RecordBatch], list[str | None]]


def keys(rows: pa.RecordBatch) -> list[str | None]:
    options = {"brokers": "b:1", "topic": "t", "key_columns": ["at"]}
    return list(RecordMapping(KafkaSinkConfig.model_validate(options), ()).fields(rows).keys or [])


TEXTS: dict[str, Texts] = {
    "csv": lambda rows: [
        text.decode() for text in Csv(CsvConfig()).encode(rows).payloads.to_pylist()
    ],
    "template": lambda rows: Template("{at}").render(rows),
    "key": keys,
    "table": lambda rows: [leaf_text(value) for value in rows.column(0)],
    "nested in a table": lambda rows: [json.loads(json_of(value)) for value in rows.column(0)],
    "dead letter": lambda rows: [
        json.loads(row_payload(rows, index))["at"] for index in range(rows.num_rows)
    ],
}


def column(type_: pa.DataType) -> pa.Array:
    values = pa.array(MICROSECONDS, pa.int64())
    if pa.types.is_time(type_):
        values = pa.array([value % DAY for value in MICROSECONDS], pa.int64())
        return values.cast(pa.time64("us")).cast(type_, safe=False)
    return values.cast(pa.timestamp("us", "UTC")).cast(type_, safe=False)


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize(
    "type_",
    [
        pa.timestamp("us", "UTC"),
        pa.timestamp("us"),
        pa.timestamp("ms"),
        pa.date32(),
        pa.time64("us"),
    ],
    ids=str,
)
def test_the_text_of_a_time_is_that_of_json(type_: pa.DataType, texts: Texts) -> None:
    rows = pa.RecordBatch.from_arrays([column(type_)], names=["at"])
    payloads = Json(JsonConfig()).encode(rows).payloads.to_pylist()
    expected = [json.loads(payload)["at"] for payload in payloads]
    assert len(expected) == len(MICROSECONDS)
    assert texts(rows) == expected


def test_a_template_with_a_null_is_null() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([None], pa.timestamp("us"))], names=["at"])
    assert Template("{at}").render(rows) == [None]


@pytest.mark.parametrize("options", [{"key": "{at}"}, {"key_columns": ["at"]}])
def test_times_of_kafka_keys(options: dict[str, object]) -> None:
    config = KafkaSinkConfig.model_validate({"brokers": "b:1", "topic": "t", **options})
    times = pa.array([NOON], pa.timestamp("us", "UTC"))
    rows = pa.RecordBatch.from_arrays([times], names=["at"])
    assert RecordMapping(config, ()).fields(rows).keys == ["2024-01-02T12:00:00Z"]
