"""Dates and times as ISO 8601 text and as numbers."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, time
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

UTC = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
_OFFSET = r"[T ].*(?:Z|[+-]\d{2}(?::?\d{2})?)$"
_FINER = {"reject": r"(\.\d{6})0{1,12}($|[Z+-])", "truncate": r"(\.\d{6})\d{1,12}($|[Z+-])"}
"""Digits below a microsecond that are removed."""

Nanoseconds = Literal["reject", "truncate"]
"""Digits below a microsecond: errors, or truncated."""


def parse_timestamps(
    texts: pa.StringArray, type_: pa.TimestampType, nanoseconds: Nanoseconds = "reject"
) -> pa.TimestampArray:
    """Parses texts such as `2024-01-02T03:04:05.678+02:00` as TIMESTAMP or TIMESTAMP_NTZ.

    Accepts a space for the T. Seconds, fraction, time and offset are optional. Times without an
    offset, and TIMESTAMP_NTZ, are UTC. Raises ArrowInvalid for other texts.
    """
    # A cast that fails takes 30 times as long as one that succeeds.
    first = texts.drop_null()[:1]
    zone = "UTC" if pc.any(pc.match_substring_regex(first, _OFFSET)).as_py() else None
    with suppress(pa.ArrowInvalid):
        return texts.cast(pa.timestamp(type_.unit, zone)).cast(type_)
    exact = pc.replace_substring_regex(texts, _FINER[nanoseconds], r"\1\2")
    aware = pc.match_substring_regex(exact, _OFFSET)
    local = pc.if_else(aware, pa.scalar(None, pa.string()), exact).cast(LOCAL)
    zoned = pc.if_else(aware, exact, pa.scalar(None, pa.string())).cast(UTC)
    return pc.coalesce(zoned.cast(LOCAL), local).cast(type_)


def milliseconds(times: pa.TimestampArray) -> list[int | None]:
    """Returns milliseconds since 1970, truncated."""
    rounded = times.cast(pa.timestamp("ms", times.type.tz), safe=False)
    return list(rounded.cast(pa.int64()).to_pylist())


def has_iso_text(type_: pa.DataType) -> bool:
    """Returns whether the values of a type are dates, times or timestamps."""
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_) or pa.types.is_time(type_))


def iso_text(column: pa.Array) -> pa.StringArray:
    """Converts dates, times and timestamps to ISO 8601 text, as JSON has them.

    Seconds have 0, 3, 6 or 9 digits of a fraction. Years after 9999 have the sign `+`.
    """
    texts = column.cast(pa.string())
    if not pa.types.is_time(column.type):
        texts = pc.replace_substring_regex(texts, r"^(\d{5})", r"+\1")
    if pa.types.is_date(column.type):
        return texts
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    texts = pc.replace_substring_regex(texts, r"\.0+(Z?)$", r"\1")
    return pc.replace_substring_regex(texts, r"(\.(?:\d{3}){1,2}?)(?:000)+(Z?)$", r"\1\2")


def duration_text(column: pa.Array) -> pa.StringArray:
    """Converts durations to ISO 8601 text: `PT86400S`, `-PT0.5S`. Raises ArrowInvalid."""
    micros = column.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
    return pa.array([None if value is None else _duration(value) for value in micros], pa.string())


def _duration(micros: int) -> str:
    seconds, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if micros < 0 else ''}PT{seconds}{fraction}S"


def iso_scalar_text(value: pa.Scalar) -> str:
    """Returns the text of a date, time or timestamp (see `iso_text`)."""
    return str(iso_text(pa.repeat(value, 1))[0].as_py())


def iso_python_text(value: datetime | time) -> str:
    """Returns the text of a Python time, without the offset of UTC (see `iso_text`)."""
    fraction = value.microsecond
    digits = "seconds" if not fraction else "microseconds" if fraction % 1000 else "milliseconds"
    return value.isoformat(timespec=digits)
