"""Times in templates: keys, topics and headers have the text of the JSON value."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest

from penstock.connectors.kafka.config import KafkaSinkConfig
from penstock.connectors.kafka.records import RecordMapping
from penstock.formats.json import Json, JsonConfig
from penstock.sdk.columns.template import Template

NOON = dt.datetime(2024, 1, 2, 12)
TIMES = [NOON.replace(microsecond=n) for n in (0, 500_000, 120_000, 123_456, 10)] + [
    NOON.replace(year=1, hour=0)
]


@pytest.mark.parametrize(
    "type_", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms"), pa.date32()]
)
def test_text_of_a_template_is_that_of_json(type_: pa.DataType) -> None:
    column = pa.array([*TIMES, None], pa.timestamp("us")).cast(type_, safe=False)
    rows = pa.RecordBatch.from_arrays([column], names=["at"])
    payloads = Json(JsonConfig()).encode(rows).payloads.to_pylist()
    assert Template("{at}").render(rows) == [json.loads(text).get("at") for text in payloads]


@pytest.mark.parametrize("options", [{"key": "{at}"}, {"key_columns": ["at"]}])
def test_times_of_kafka_keys(options: dict[str, object]) -> None:
    config = KafkaSinkConfig.model_validate({"brokers": "b:1", "topic": "t", **options})
    column = pa.array([NOON], pa.timestamp("us", "UTC"))
    rows = pa.RecordBatch.from_arrays([column], names=["at"])
    keys = RecordMapping(config, ()).fields(rows).keys
    assert keys == ["2024-01-02T12:00:00Z"]
