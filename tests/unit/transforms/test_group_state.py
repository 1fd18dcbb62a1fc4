"""Rows packed by buckets of groups: every group in one bucket, in the order of the input."""

from __future__ import annotations

from functools import partial

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from penstock.handlers.dispatch import ByGroup
from penstock.handlers.roles import Roles
from penstock.handlers.threshold import Threshold, ThresholdOptions
from penstock.transforms.group_state import RESULT, BucketTask, Pack, _Unpack, handler_names

OPTIONS = ThresholdOptions("c2", RESULT, 10, 2, 5)


def rows(count: int) -> pa.RecordBatch:
    hosts = [f"h{i % 40}" if i % 41 else None for i in range(count)]
    times = pa.array([i * 10**6 for i in range(count)], pa.timestamp("us", "UTC"))
    values = [float(i % 37) for i in range(count)]
    floats = [(0.0, -0.0)[i % 2] for i in range(count)]
    return pa.record_batch([hosts, times, values, floats], ["by0", "c1", "c2", "by1"])


def computed(batches: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    """Returns the rows of all buckets in the order of their times, packed in reverse order."""
    packed = pa.Table.from_batches(Pack(("by0", "by1"))(iter(batches))).to_pandas()
    task = BucketTask(partial(ByGroup, ("by0", "by1"), partial(Threshold, OPTIONS)), Roles("c1"))
    outputs = [task.compute(part.iloc[::-1]) for _, part in packed.groupby("bucket")]
    found = pa.RecordBatch.from_pandas(pd.concat(outputs), preserve_index=False)
    schema = batches[0].schema.append(pa.field(RESULT, pa.float64()))
    unpacked = pa.Table.from_batches(list(_Unpack(schema)(iter([found]))))
    return sorted((tuple(row.values()) for row in unpacked.to_pylist()), key=lambda row: row[1])


@pytest.mark.slow
def test_batches_of_arrow_change_nothing() -> None:
    whole = rows(400)
    expected = computed([whole])
    assert [row[:3] for row in expected] == [tuple(row.values())[:3] for row in whole.to_pylist()]
    assert {level for *_, level in expected} > {10.0, 20.0}
    parts = [whole.slice(start, 7) for start in range(0, 400, 7)]
    assert computed([whole.slice(0, 0), *parts]) == expected


def test_names_of_groups_do_not_depend_on_other_columns() -> None:
    assert handler_names(4, [2, 0]) == ["by1", "c1", "by0", "c3"]
