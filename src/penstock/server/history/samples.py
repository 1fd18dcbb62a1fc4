"""Samples as bytes, and their merging into longer steps."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

from penstock.server.history.levels import Value, merge
from penstock.server.history.sampling import Series

Sample = Mapping[Series, Value]
"""The values of a pipeline in a step of time."""
ABSENT = Value.of(math.nan)


def encode(sample: Sample, layout: Sequence[Series]) -> bytes:
    """Returns a sample as compressed floats: all values, all least and all greatest ones."""
    values = [sample.get(series, ABSENT) for series in layout]
    floats = [
        *(each.value for each in values),
        *(each.least for each in values),
        *(each.most for each in values),
    ]
    return zlib.compress(struct.pack(f"<{len(floats)}f", *floats), 1)


def decode(data: bytes, columns: Iterable[tuple[int, Series]]) -> dict[Series, Value]:
    """Returns the series of some columns of a sample of `encode`."""
    floats = decode_floats(data)
    size = len(floats) // 3
    return {
        series: Value(floats[i], floats[size + i], floats[2 * size + i])
        for i, series in columns
        if not math.isnan(floats[i])
    }


def decode_floats(data: bytes) -> tuple[float, ...]:
    """Returns the numbers of a sample, without their meaning."""
    content = zlib.decompress(data)
    return struct.unpack(f"<{len(content) // 4}f", content)


def merge_samples(samples: Iterable[Sample]) -> dict[Series, Value]:
    """Returns the sample of a step from the samples within it, the oldest first."""
    values: dict[Series, list[Value]] = {}
    for sample in samples:
        for series, value in sample.items():
            values.setdefault(series, []).append(value)
    return {series: merge(each, last=series.is_gauge) for series, each in values.items()}
