"""Names of Arrow types, as Streamling writes them, as types of columns."""

from __future__ import annotations

import re

_TYPES = {
    "string": "STRING", "utf8": "STRING", "boolean": "BOOLEAN", "int8": "TINYINT",
    "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "uint8": "SMALLINT", "uint16": "INT",
    "uint32": "BIGINT", "uint64": "DECIMAL(20,0)", "float16": "FLOAT", "float32": "FLOAT",
    "float64": "DOUBLE", "binary": "BINARY", "date32": "DATE", "date64": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal(?:128|256)?(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\Z")
_MAX_PRECISION = 38
NAMES = (*_TYPES, "decimal")


def column_type(name: str) -> str | None:
    """Returns the type of a column for the name of an Arrow type; None for other names.

    Decimals of more digits than Spark has are text.
    """
    name = name.strip().lower()
    digits = _digits(name)
    if digits is None:
        return _TYPES.get(name)
    precision, scale = digits
    if precision > _MAX_PRECISION:
        return "STRING"
    return f"DECIMAL({precision},{scale})" if scale <= precision else None


def is_wide(name: str) -> bool:
    """Returns whether a type has integers of more digits than decimals of Spark."""
    digits = _digits(name.strip().lower())
    return digits is not None and digits[0] > _MAX_PRECISION and digits[1] == 0


def _digits(name: str) -> tuple[int, int] | None:
    """Returns the precision and the scale of a decimal type; None for another one."""
    match = _DECIMAL.match(name)
    if match is None:
        return None
    return int(match[1] or _MAX_PRECISION), int(match[2] or 0) if match[1] else 9
