"""JSON text of values of Avro."""

from __future__ import annotations

import math
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from penstock.sdk.columns.scalar_parsing import NOT_FINITE


def json_text(value: Any) -> str:
    """Returns the JSON text of a value of fastavro, whose times are numbers."""
    if isinstance(value, dict):
        members = (f"{encode_basestring(name)}:{json_text(item)}" for name, item in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{NOT_FINITE[repr(value)]}"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    return encode_basestring(value.decode("latin-1") if isinstance(value, bytes) else str(value))
