"""Inference of a schema from a sample of JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conform import is_list
from penstock.sdk.columns.inference import infer_text_type, merge_types

_MAX_DEPTH = 100
"""The maximum depth of a value. Arrow cannot read a serialized schema of 128 levels."""


def infer(texts: Iterable[bytes]) -> pa.Schema | None:
    """Infers the columns of the objects among `texts`, in order of appearance.

    Ignores objects of more than `_MAX_DEPTH` levels.
    """
    type_: pa.DataType = pa.null()
    for text in texts:
        try:
            value = json.loads(text)
            if isinstance(value, dict):
                type_ = merge_types(type_, _type(value, _MAX_DEPTH))
        except (ValueError, RecursionError):
            continue
    if pa.types.is_null(type_):
        return None
    return pa.schema(list(_without_nulls(type_)))


def _type(value: Any, depth: int) -> pa.DataType:
    """Returns the type of a value. Raises ValueError for more than `depth` levels."""
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return pa.struct([pa.field(name, _type(inner, depth - 1)) for name, inner in value.items()])
    if isinstance(value, list):
        inner: pa.DataType = pa.null()
        for item in value:
            inner = merge_types(inner, _type(item, depth - 1))
        return pa.list_(pa.field("element", inner))
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -(2**63) <= value < 2**63 else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    return infer_text_type(value) if isinstance(value, str) else pa.null()


def _without_nulls(type_: pa.DataType) -> pa.DataType:
    """Replaces nulls and empty objects in a type by STRING."""
    if pa.types.is_struct(type_) and type_.num_fields:
        return pa.struct([field.with_type(_without_nulls(field.type)) for field in type_])
    if is_list(type_):
        return pa.list_(pa.field("element", _without_nulls(type_.value_type)))
    return pa.string() if pa.types.is_null(type_) or pa.types.is_struct(type_) else type_
