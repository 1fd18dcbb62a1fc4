"""Lines of Graphite: `PATH VALUE [SECONDS]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

from penstock.core.errors import DecodeError
from penstock.formats.graphite.template import Metric, Template

NOW = -1
"""The time of a line whose time is that of its arrival."""
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_SPECIAL = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_MAX, _DIGITS = 2**63, 100


@dataclass(frozen=True)
class Point:
    """The value of a metric at a time in seconds, or at `NOW`."""

    metric: Metric
    value: int | float
    time: int


def parse_line(line: str, templates: Sequence[Template], separator: str) -> Point:
    """Returns the point of a line by the first template that matches. Raises DecodeError.

    Spaces are collapsed. The time is that of arrival if there are not exactly three parts, or if it
    is -1.
    """
    parts = line.split()
    if len(parts) < 2:
        raise DecodeError(
            f'expected PATH VALUE SECONDS, found "{" ".join(parts)}"', code="not-graphite"
        )
    matches = (template.match(parts[0], separator) for template in templates)
    metric = next((each for each in matches if each is not None), None)
    if metric is None:
        raise DecodeError(f'no template matches the path "{parts[0]}"', code="no-template")
    value = parse_value(parts[1])
    return Point(metric, value, parse_seconds(parts[2]) if len(parts) == 3 else NOW)


def parse_value(text: str) -> int | float:
    """Returns a number: an integer of 64 bits, or a DOUBLE. Raises DecodeError."""
    if _INTEGER.fullmatch(text) and len(text) <= _DIGITS and -_MAX <= int(text) < _MAX:
        return int(text)
    if _SPECIAL.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise DecodeError(f'the value "{text}" is not a number', code="not-a-number")
    number = float(text)
    if isinf(number):
        raise DecodeError(f'the value "{text}" is out of range', code="not-a-number")
    return number


def parse_seconds(text: str) -> int:
    """Returns the seconds of a time. Raises DecodeError."""
    if not _INTEGER.fullmatch(text) or len(text) > _DIGITS or not -_MAX <= int(text) < _MAX:
        raise DecodeError(
            f'the time "{text}" is not an integer number of seconds', code="not-a-number"
        )
    return int(text)
