"""INT96 timestamps of Parquet: nanoseconds of years that 64 bits cannot hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.columns.scalar_parsing import TRUNCATE_HINT
from penstock.sdk.encoding.arrow_files import Unreadable
from penstock.sdk.encoding.arrow_validity import Mask, any_leaf, any_of

MAX_NANO_SECONDS = 9_223_372_035
"""The seconds before and after 1970 that 64 bits of nanoseconds hold: the years 1678 to 2261."""
MAX_MICRO_SECONDS = 9_223_372_036_853


def split_times(
    nanos: pa.RecordBatch, micros: pa.RecordBatch, seconds: pa.RecordBatch, *, truncate: bool
) -> list[pa.RecordBatch | Unreadable]:
    """Returns the rows of a batch with exact timestamps.

    `nanos` is the batch, whose INT96 columns overflow in other years than 1678 to 2261. `micros`
    and `seconds` are these columns in other units. A batch with other years has microseconds. A row
    with a fraction of a microsecond in these years is unreadable, unless `truncate` is set, as is
    one of a year that microseconds cannot hold.
    """
    far = _any(seconds, _beyond(MAX_NANO_SECONDS))
    if not far.any():
        return [nanos]
    fine, outside = _has_nanos(nanos, micros), _any(seconds, _beyond(MAX_MICRO_SECONDS))
    exact = nanos
    for name, column in zip(micros.schema.names, micros.columns, strict=True):
        exact = exact.set_column(exact.schema.get_field_index(name), name, column)
    kind = np.where(outside, 3, np.where(fine, np.where(far, 0 if truncate else 2, 1), 0))
    parts: list[pa.RecordBatch | Unreadable] = []
    starts = np.flatnonzero(np.diff(kind, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(kind)], strict=True):
        rows = slice(int(start), int(stop - start))
        if kind[start] > 1:
            parts += [Unreadable(1, _ERRORS[kind[start]])] * rows.stop
        else:
            batch = nanos if kind[start] else exact
            parts.append(batch.slice(rows.start, rows.stop))
    return parts


_ERRORS = {
    2: DecodeError(
        "a timestamp has nanoseconds; expected microseconds", code="wrong-type", hint=TRUNCATE_HINT
    ),
    3: DecodeError("a timestamp is out of range", code="wrong-type"),
}


def _any(rows: pa.RecordBatch, test: Callable[[pa.Array], Mask]) -> Mask:
    return any_of(rows.num_rows, (any_leaf(column, test) for column in rows.columns))


def _beyond(seconds: int) -> Callable[[pa.Array], Mask]:
    return lambda array: np.abs(_numbers(array)) > seconds


def _has_nanos(nanos: pa.RecordBatch, micros: pa.RecordBatch) -> Mask:
    """Returns whether each row has a fraction of a microsecond. Both units overflow alike."""
    leaves: list[npt.NDArray[np.int64]] = []

    def collect(array: pa.Array) -> Mask:
        leaves.append(_numbers(array))
        return np.zeros(len(array), bool)

    _any(nanos.select(micros.schema.names), collect)
    pending = iter(leaves)
    return _any(micros, lambda array: next(pending) != _numbers(array) * 1000)


def _numbers(array: pa.Array) -> npt.NDArray[np.int64]:
    if not pa.types.is_timestamp(array.type):
        return np.zeros(len(array), np.int64)
    return np.asarray(array.cast(pa.int64()).fill_null(0))
