"""Values as literals of ClickHouse's SQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

PARAMETER = "\0"
_LEAST, _END = -(1 << 63), 1 << 64
"""The bounds of integers whose literals are exact."""


def literal(value: Any) -> str:
    """Returns the literal of a value of Python."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"toFloat64('{value}')"
        case Decimal():
            exponent = value.as_tuple().exponent
            if exponent == 0 and _LEAST <= value < _END:  # IN of UInt64 does not accept decimals
                return f"{value:f}"
            scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
            return f"toDecimal256('{value:f}', {scale})"
        case datetime():
            at = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return f"toDateTime64('{at.isoformat(' ', 'microseconds')}', 6, 'UTC')"
        case date():
            return f"toDate32('{value.isoformat()}')"
        case bytes():
            return f"unhex('{value.hex()}')"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def statement(text: str, parameters: Sequence[Any]) -> str:
    """Returns a statement with literals in place of its parameters."""
    parts = text.split(PARAMETER)
    values = [*map(literal, parameters), ""]
    return "".join(part + value for part, value in zip(parts, values, strict=True))
