"""Statistics of data files, by which readers skip files.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = 32
"""The number of columns with statistics."""
MAX_TEXT = 64
"""The length of a text up to which it is a bound."""
_LAST_YEAR = 9999
"""The year whose times cannot be rounded up."""


class Statistics:
    """The number of rows, the bounds and the nulls of the columns of a file.

    Bounds are those of integers, dates, times and short texts.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._nulls: dict[str, int] = {}
        self._bounds: dict[str, tuple[Any, Any] | None] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows of the file."""
        self.rows += rows.num_rows
        for name, column in zip(rows.schema.names[:COLUMNS], rows.columns, strict=False):
            if pa.types.is_nested(column.type):
                continue
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            if _has_bounds(column.type) and column.null_count < len(column):
                self._add_bounds(name, column)

    def _add_bounds(self, name: str, column: pa.Array) -> None:
        found = pc.min_max(column)
        try:
            low, high = found["min"].as_py(), found["max"].as_py()
        except (ValueError, OverflowError):
            self._bounds[name] = None
            return
        known = self._bounds.get(name, (low, high))
        is_long = isinstance(low, str) and max(len(low), len(high)) > MAX_TEXT
        if known is None or is_long or (isinstance(high, dt.date) and high.year == _LAST_YEAR):
            self._bounds[name] = None
        else:
            self._bounds[name] = min(known[0], low), max(known[1], high)

    def to_json(self) -> str:
        """Returns the statistics as they are in the log."""
        bounds = {name: each for name, each in self._bounds.items() if each is not None}
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: _text(low) for name, (low, _) in bounds.items()},
                "maxValues": {name: _text(high, up=True) for name, (_, high) in bounds.items()},
                "nullCount": self._nulls,
            }
        )


def merged_bounds(statistics: Sequence[str]) -> Mapping[str, tuple[Any, Any]]:
    """Returns the bounds of numbers and texts in all of several files, by column."""
    files = [json.loads(each) for each in statistics]
    names = {name for each in files for name in each["minValues"]}
    found = {}
    for name in names:
        lows = [each["minValues"].get(name) for each in files]
        highs = [each["maxValues"].get(name) for each in files]
        if None not in lows:
            found[name] = min(lows), max(highs)
    return found


def _has_bounds(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_string(type_)
    )


def _text(value: Any, *, up: bool = False) -> Any:
    """Returns a bound for JSON. Times have milliseconds, and are rounded `up` or down."""
    if not isinstance(value, dt.datetime):
        return value.isoformat() if isinstance(value, dt.date) else value
    rest = value.microsecond % 1000
    value -= dt.timedelta(microseconds=rest)
    if up and rest:
        value += dt.timedelta(milliseconds=1)
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if value.tzinfo is not None else text
