"""Records of Avro as rows of one column with their JSON text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.text_values import NOT_FINITE
from penstock.sdk.encoding.json_texts import text_rows


def json_rows(values: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Returns rows of the only column of `schema`. Raises PlanError for other columns."""
    return text_rows([_text(value) for value in values], schema, "avro")


def _text(value: Any) -> str:
    """Returns the JSON text of a value of fastavro, whose times are numbers."""
    if isinstance(value, dict):
        members = (f"{encode_basestring(name)}:{_text(item)}" for name, item in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{NOT_FINITE[repr(value)]}"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    return encode_basestring(value.decode("latin-1") if isinstance(value, bytes) else str(value))
