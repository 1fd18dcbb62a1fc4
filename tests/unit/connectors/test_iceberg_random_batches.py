"""Random upserts and deletes of tables of Iceberg with partitions, and their changes."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_tables import catalog_options
from lake_tables import read, write
from penstock.connectors.iceberg import IcebergSink, IcebergSource
from penstock.sdk import Context

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        ("k", pa.int64()), ("s", pa.string()), ("d", pa.date32()), ("f", pa.float64()),
        ("n", pa.decimal128(20, 3)), ("b", pa.binary()), ("t", pa.timestamp("us", tz="UTC")),
        ("l", pa.list_(pa.struct([("x", pa.int32())]))),
    ]
)  # fmt: skip
PARTITIONS = [
    ["s", "f"], ["bucket(3, k)"], ["month(t)", "truncate(2, s)"], ["truncate(10, n)", "b"],
    ["hour(t)", "d"],
]  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "s": ["", "a", "ab", "abc", "ü/=?", "x y"],
    "d": [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "f": [None, 0.0, -0.0, 1.5, float("inf")],
    "n": [None, Decimal("-0.001"), Decimal("99999999999999.999")],
    "b": [None, b"", b"\0\xff"],
    "t": [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
          dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
    "l": [None, [], [None, {"x": 1}]],
}  # fmt: skip


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(len(PARTITIONS)))
def test_the_changes_are_those_of_the_batches(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    options = catalog_options(tmp_path)
    key = ["k", "s"] if seed % 2 else ["k"]
    more = {"partition_by": PARTITIONS[seed], "compact": {"files": 3}}
    sink_config: Any = IcebergSink.config_type.model_validate({**options, **more})
    reading = {"watch": True, "interval": "1ms", "changes": True}
    source_config: Any = IcebergSource.config_type.model_validate({**options, **reading})
    expected: dict[Any, Any] = {}
    found: dict[Any, Any] = {}
    source, offset = IcebergSource.create(source_config), None
    for number in range(4):
        rows = {}
        for _ in range(chance.randint(1, 12)):
            row = {"k": chance.randint(0, 20)}
            row |= {name: chance.choice(values) for name, values in VALUES.items()}
            rows[tuple(row[name] for name in key)] = row
        operations = [chance.choice("uuud") for _ in rows]
        sink: Any = IcebergSink.create(sink_config, Context(owner="one"))
        sink.mode, sink.primary_key = "upsert", tuple(key)
        batch = pa.RecordBatch.from_pylist([*rows.values()], schema=SCHEMA)
        assert not write(sink, batch, number, pa.array(operations), parts=2)
        for (values, row), operation in zip(rows.items(), operations, strict=True):
            expected.pop(values, None)
            if operation != "d":
                expected[values] = row
        changes, offset = read(source, offset)
        for row in changes:
            operation, values = row.pop("_op"), tuple(row[name] for name in key)
            if operation == "d":
                assert found.pop(values) == row
            else:
                assert values not in found
                found[values] = row
        assert found == expected
