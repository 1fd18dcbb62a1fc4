"""Times as text, ISO 8601 in UTC where no offset is given, and as numbers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

UTC = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
_OFFSET = r"[T ].*(?:Z|[+-]\d{2}(?::?\d{2})?)$"
_TOO_FINE = r"(\.\d{6})\d{1,12}"


def instants(texts: pa.StringArray, type_: pa.TimestampType) -> pa.TimestampArray:
    """`2024-01-02T03:04:05.678+02:00` and the like as TIMESTAMP or TIMESTAMP_NTZ.

    A space may stand for the T; seconds, their fraction, the time and the offset may be missing;
    what is finer than a microsecond is cut off; without an offset, and in TIMESTAMP_NTZ, times
    are UTC. Raises ArrowInvalid for any other text.
    """
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        exact = pc.replace_substring_regex(texts, _TOO_FINE, r"\1")
        aware = pc.match_substring_regex(exact, _OFFSET)
        here = pc.if_else(aware, pa.scalar(None, pa.string()), exact).cast(LOCAL)
        there = pc.if_else(aware, exact, pa.scalar(None, pa.string())).cast(UTC)
        return pc.coalesce(there.cast(LOCAL), here).cast(type_)


def milliseconds(times: pa.TimestampArray) -> list[int | None]:
    """Milliseconds since 1970; what is finer is cut off."""
    rounded = times.cast(pa.timestamp("ms", times.type.tz), safe=False)
    return list(rounded.cast(pa.int64()).to_pylist())
