"""Timestamps as ISO 8601 text and as numbers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

UTC = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
_OFFSET = r"[T ].*(?:Z|[+-]\d{2}(?::?\d{2})?)$"
_TOO_FINE = r"(\.\d{6})\d{1,12}"


def parse_timestamps(texts: pa.StringArray, type_: pa.TimestampType) -> pa.TimestampArray:
    """Parses texts such as `2024-01-02T03:04:05.678+02:00` as TIMESTAMP or TIMESTAMP_NTZ.

    Accepts a space for the T. Seconds, fraction, time and offset are optional. Digits below a
    microsecond are truncated. Times without an offset, and TIMESTAMP_NTZ, are UTC. Raises
    ArrowInvalid for other texts.
    """
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        exact = pc.replace_substring_regex(texts, _TOO_FINE, r"\1")
        aware = pc.match_substring_regex(exact, _OFFSET)
        local = pc.if_else(aware, pa.scalar(None, pa.string()), exact).cast(LOCAL)
        zoned = pc.if_else(aware, exact, pa.scalar(None, pa.string())).cast(UTC)
        return pc.coalesce(zoned.cast(LOCAL), local).cast(type_)


def milliseconds(times: pa.TimestampArray) -> list[int | None]:
    """Returns milliseconds since 1970, truncated."""
    rounded = times.cast(pa.timestamp("ms", times.type.tz), safe=False)
    return list(rounded.cast(pa.int64()).to_pylist())


def iso_text(column: pa.Array) -> pa.StringArray:
    """Converts timestamps to ISO 8601 with 0, 3 or 6 digits of a second, as JSON has them."""
    texts = pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
    texts = pc.replace_substring_regex(texts, r"\.0+(Z?)$", r"\1")
    return pc.replace_substring_regex(texts, r"(\.\d{3})0+(Z?)$", r"\1\2")
