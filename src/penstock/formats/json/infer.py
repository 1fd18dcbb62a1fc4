"""The schema of a sample of JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.sdk.kit.columns import is_list
from penstock.sdk.kit.infer import merged, of_text


def infer(texts: Iterable[bytes]) -> pa.Schema | None:
    """The columns of the objects among `texts`, in the order in which they first appear."""
    found: pa.DataType = pa.null()
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found = merged(found, _type(value))
    if pa.types.is_null(found):
        return None
    return pa.schema(list(_settled(found)))


def _type(value: Any) -> pa.DataType:
    if isinstance(value, dict):
        return pa.struct([pa.field(name, _type(inner)) for name, inner in value.items()])
    if isinstance(value, list):
        inner: pa.DataType = pa.null()
        for each in value:
            inner = merged(inner, _type(each))
        return pa.list_(pa.field("element", inner))
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -(2**63) <= value < 2**63 else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    return of_text(value) if isinstance(value, str) else pa.null()


def _settled(type_: pa.DataType) -> pa.DataType:
    """The type without nulls and empty objects, which hold text if anything."""
    if pa.types.is_struct(type_) and type_.num_fields:
        return pa.struct([f.with_type(_settled(f.type)) for f in type_])
    if is_list(type_):
        return pa.list_(pa.field("element", _settled(type_.value_type)))
    return pa.string() if pa.types.is_null(type_) or pa.types.is_struct(type_) else type_
