"""Inference of a schema from a sample of JSON texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.inference import (
    column_of,
    infer_number_type,
    infer_text_type,
    merge_types,
    object_type,
)

_MAX_DEPTH = 100
"""The maximum depth of a value. Arrow cannot read a serialized schema of 128 levels."""


def _itself(value: Any) -> Iterator[Any]:
    yield value


def infer(
    texts: Iterable[bytes], rows_of: Callable[[Any], Iterator[Any]] = _itself
) -> pa.Schema | None:
    """Infers the columns of the rows in texts, in order of appearance.

    `rows_of` yields the rows of a JSON value; those that are no objects are ignored, as are objects
    of more than `_MAX_DEPTH` levels. Raises PlanError for an object whose keys differ only by case.
    """
    type_: pa.DataType = pa.null()
    for text in texts:
        try:
            value = _DECODER.decode(text.decode().strip(_SPACE))
            for row in rows_of(value):
                if isinstance(row, dict):
                    type_ = merge_types(type_, _type(row, _MAX_DEPTH))
        except (ValueError, RecursionError):
            continue
    if pa.types.is_null(type_):
        return None
    return pa.schema([column_of(field.name, field.type) for field in type_])


class _Number(str):
    """A number in its original notation."""


_SPACE = " \t\r\n\ufeff"
_DECODER = json.JSONDecoder(strict=False, parse_int=_Number, parse_float=_Number)


def _type(value: Any, depth: int) -> pa.DataType:
    """Returns the type of a value. Raises ValueError for more than `depth` levels."""
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return object_type({name: _type(inner, depth - 1) for name, inner in value.items()})
    if isinstance(value, list):
        inner: pa.DataType = pa.null()
        for item in value:
            inner = merge_types(inner, _type(item, depth - 1))
        return pa.list_(pa.field("element", inner))
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, _Number):
        return infer_number_type(value)
    if isinstance(value, float):
        return pa.float64()
    return infer_text_type(value) if isinstance(value, str) else pa.null()
