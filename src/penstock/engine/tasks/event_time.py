"""Range of event times: outside of it Spark would drop rows of windows without an error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""The first watermark of a query. Rows up to this time are late."""
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""The end of event times, far enough before the sentinel row for the windows of such rows."""


def find_out_of_range(times: pa.Array, latest: datetime = LATEST) -> list[int]:
    """Returns the indexes of the times at or before `EARLIEST`, or at or after `latest`."""
    numbers = times.cast(pa.timestamp("us")).cast(pa.int64())
    outside = pc.or_(
        pc.less_equal(numbers, _microseconds(EARLIEST)),
        pc.greater_equal(numbers, _microseconds(latest)),
    )
    return [int(index) for index in pc.indices_nonzero(outside.fill_null(False)).to_numpy()]


def latest_by_partition(
    times: pa.Array, origins: pa.Array, partition_of: Callable[[str], str]
) -> dict[str, int]:
    """Returns the latest event time of each partition in microseconds since 1970.

    `partition_of` returns the partition of an origin.
    """
    numbers = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    rows = pa.table({"origin": origins, "time": numbers}).filter(pc.is_valid(numbers))
    by_origin = rows.group_by("origin").aggregate([("time", "max")])
    latest: dict[str, int] = {}
    for row in by_origin.to_pylist():
        partition, time = partition_of(row["origin"]), row["time_max"]
        latest[partition] = max(time, latest.get(partition, time))
    return latest


def out_of_range(name: str, time: pa.Scalar) -> DecodeError:
    """Returns the error of a row whose event time in column `name` is out of range."""
    return DecodeError(
        f'column "{name}": expected an event time after {_text(EARLIEST)} and before '
        f"{_text(LATEST)}, found {time.cast(pa.string()).as_py()}",
        code="event-time-out-of-range",
        hint="Correct the time, or write rows of such times without a window.",
    )


def _microseconds(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
