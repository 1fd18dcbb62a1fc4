"""Durations and sizes with units."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SECONDS = {
    "us": 1e-6, "microsecond": 1e-6,
    "ms": 1e-3, "millisecond": 1e-3, "milli": 1e-3,
    "s": 1.0, "sec": 1.0, "second": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hour": 3600.0,
    "d": 86400.0, "day": 86400.0,
    "w": 604800.0, "week": 604800.0,
}  # fmt: skip
_BYTES = {
    "b": 1, "byte": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_TERM = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)")


def seconds(text: str | float) -> float:
    """Returns `"500ms"`, `"1h30m"` or `"10 minutes"` in seconds. Raises ValueError."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        raise ValueError("expected a duration with a unit, such as 10s, 500ms or 1 hour")
    return _sum(str(text), _SECONDS, "a duration such as 10s, 500ms or 1 hour")


def positive_seconds(text: str | float) -> float:
    """Returns a duration of at least a millisecond in seconds. Raises ValueError."""
    value = seconds(text)
    if value < 0.001:
        raise ValueError("expected a duration of at least 1ms")
    return value


def byte_count(text: str | int) -> int:
    """Returns `"64 MB"`, `"1GiB"` or a plain number in bytes. Raises ValueError."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    if str(text).strip().isdecimal():
        return int(text)
    return int(_sum(str(text), _BYTES, "a size such as 64 MB, 1 GiB or a number of bytes"))


def _sum(text: str, units: dict[str, float] | dict[str, int], expected: str) -> float:
    total, position = 0.0, 0
    for match in _TERM.finditer(text):
        unit = match[2].lower()
        if unit not in units and unit.endswith("s"):
            unit = unit[:-1]
        if match.start() != position or unit not in units:
            break
        total += float(match[1]) * units[unit]
        position = match.end()
    if position == 0 or text[position:].strip():
        raise ValueError(f"expected {expected}")
    return total


def duration_text(value: float) -> str:
    """Returns seconds with a unit: `1.5s`, `200ms`, `2h`."""
    if value < 1:
        return f"{round(value * 1000)}ms"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if value >= size and value % size == 0:
            return f"{int(value // size)}{unit}"
    return f"{value:g}s"


def size_text(value: float) -> str:
    """Returns bytes with a unit: `1.5 MB`."""
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{int(value)} B"


def binary_size_text(value: float) -> str:
    """Returns bytes with a binary unit, as sizes of memory are written: `1.5 GiB`, `512 MiB`."""
    unit, size = ("GiB", 2**30) if value >= 2**30 else ("MiB", 2**20)
    return f"{value / size:.1f}".removesuffix(".0") + f" {unit}"


Duration = Annotated[
    float,
    BeforeValidator(seconds),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["10s", "500ms", "1 hour"]}),
]
"""Seconds, written with a unit."""

PositiveDuration = Annotated[
    float,
    BeforeValidator(positive_seconds),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["10s", "500ms", "1 hour"]}),
]
"""At least a millisecond, as seconds: a timeout or an interval. Written with a unit."""

ByteSize = Annotated[
    int,
    BeforeValidator(byte_count),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "integer"}], "examples": ["64 MB", 1048576]}
    ),
]
"""Bytes, written as a number or with a unit."""
