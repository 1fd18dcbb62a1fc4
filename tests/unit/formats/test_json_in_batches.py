"""JSON records in batches: the value of a record does not depend on the other records."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.formats.json import Json, JsonConfig
from penstock.sdk.columns.ddl import arrow_schema

pytestmark = pytest.mark.slow

SCHEMA = arrow_schema(
    "a INT, b DOUBLE, d DECIMAL(20,4), s STRUCT<x: BIGINT, y: STRING>, m MAP<STRING, INT>, t STRING"
)
PARTS = [
    '"a":1', '"A":1', '"a":"1"', '"A":01', '"A":1.', '"a":1e0', '"a":null', '"a":"x"', '"a":1.5',
    '"b":2', '"B":02', '"B":"2.5"', '"b":.5', '"b":1e400', '"d":0.1', '"D":"1e2"', '"D":1.',
    '"d":12345678901234567.5', '"s":{"x":1}', '"S":{"X":2,"y":"a"}', '"s":{"X":03}', '"s":{}',
    '"m":{"A":1,"a":2}', '"m":{"A":1}', '"M":{"s":01}', '"t":"\\"A\\":1"', '"T":"a"', '"t":5',
]  # fmt: skip
OTHERS = ["x", "", "{}", "[]", '{"a":1}{"a":2}', '{"A":1,}', '{"a":1,"A":2}', " {} "]


def decode(payloads: Sequence[str]) -> list[Any]:
    """Returns a row for each payload; None for a dead letter."""
    decoded = Json(JsonConfig()).decode(
        pa.array([payload.encode() for payload in payloads], pa.binary()), SCHEMA
    )
    rows: list[Any] = [None] * len(payloads)
    index = range(len(payloads)) if decoded.index is None else decoded.index.to_pylist()
    for position, row in zip(index, decoded.rows.to_pylist(), strict=True):
        rows[position] = row
    assert {failure.index for failure in decoded.failures} == set(range(len(rows))) - {*index}
    return rows


@pytest.mark.parametrize("other", ["x", '{"a":"1"}', '{"a":2}', '{"a":1.5}'])
@pytest.mark.parametrize("text", ['{"A":1,}', '{"A":01}', '{"A":1.}'])
def test_a_text_that_is_not_strict_has_its_value_in_all_batches(text: str, other: str) -> None:
    (alone,) = decode([text])
    assert alone["a"] == 1
    assert decode([text, other]) == [alone, *decode([other])]
    assert decode([other] * 20 + [text]) == [*decode([other]) * 20, alone]


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(6))
def test_records_in_batches(seed: int) -> None:
    random = Random(seed)
    samples = [random.sample(PARTS, random.randint(1, 3)) for _ in range(150)]
    payloads = OTHERS + [
        "{" + ",".join(parts) + random.choice(["", "", ","]) + "}" for parts in samples
    ]
    alone = {payload: decode([payload])[0] for payload in payloads}
    assert sum(row is not None for row in alone.values()) > 20
    for size in [2] * 60 + [3] * 40 + [20] * 10 + [100] * 3:
        batch = [random.choice(payloads) for _ in range(size)]
        assert decode(batch) == [alone[payload] for payload in batch]
