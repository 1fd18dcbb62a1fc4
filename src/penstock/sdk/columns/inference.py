"""Inference of types that hold each value of a sample exactly."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pyarrow as pa

from penstock.sdk.columns.names import ambiguous_names, fold
from penstock.sdk.columns.times import UTC, parse_timestamps
from penstock.sdk.columns.type_names import is_list

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_INTEGER = re.compile(r"-?\d+\Z")
_MAX_DIGITS = 38
_SMALL = pa.int32()
"""The type of integers up to 2^53 during the inference: DOUBLE holds them, too."""
_DIGITS = {_SMALL: 16, pa.int64(): 19}
INEXACT_AS_DOUBLE = {b"inexact_as": b"double"}
"""The metadata of an inferred column with numbers that DOUBLE does not hold."""


def infer_text_type(text: str) -> pa.DataType:
    """Returns TIMESTAMP, DATE or STRING for a text."""
    if not (_DATE.match(text) or _TIME.match(text)):
        return pa.string()
    kind = pa.date32() if _DATE.match(text) else UTC
    try:
        parse_timestamps(pa.array([text]), UTC)
    except pa.ArrowInvalid:
        return pa.string()
    return kind


def infer_number_type(text: str) -> pa.DataType:
    """Returns the type of a number, for `merge_types`: integer, DOUBLE, DECIMAL or STRING.

    A number is a DOUBLE if the nearest DOUBLE has the same digits.
    """
    value = Decimal(text)
    if _INTEGER.match(text):
        if abs(value) <= 2**53:
            return _SMALL
        if -(2**63) <= value < 2**63:
            return pa.int64()
    elif _is_double(text, value):
        return pa.float64()
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return _decimal(max(len(digits) + max(0, exponent) - scale, 0), scale)


def _is_double(text: str, value: Decimal) -> bool:
    nearest = float(text)
    digits = len(value.as_tuple().digits)
    return math.isfinite(nearest) and Decimal(f"{nearest:.{digits - 1}e}") == value


def _decimal(whole: int, scale: int) -> pa.DataType:
    """Returns a DECIMAL with digits before and after the point; STRING for too many."""
    precision = max(whole + scale, 1)
    return pa.decimal128(precision, scale) if precision <= _MAX_DIGITS else pa.string()


def merge_types(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Returns a type for values of both inferred types; STRING if there is no other.

    Fields of objects that differ only by case are one field.
    """
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return _merge_structs(left, right)
    if is_list(left) and is_list(right):
        return pa.list_(pa.field("element", merge_types(left.value_type, right.value_type)))
    if pa.types.is_nested(left) or pa.types.is_nested(right):
        return pa.string()
    pair = {left, right}
    if pair == {pa.date32(), UTC}:
        return UTC
    if pair == {_SMALL, pa.int64()}:
        return pa.int64()
    if pair == {_SMALL, pa.float64()}:
        return pa.float64()
    if any(map(pa.types.is_decimal, pair)) and all(map(_has_digits, pair)):
        return _decimal(max(map(_whole_digits, pair)), max(map(_scale, pair)))
    return pa.string()


def _has_digits(type_: pa.DataType) -> bool:
    return type_ in _DIGITS or bool(pa.types.is_decimal(type_))


def _scale(type_: pa.DataType) -> int:
    return int(type_.scale) if pa.types.is_decimal(type_) else 0


def _whole_digits(type_: pa.DataType) -> int:
    return _DIGITS[type_] if type_ in _DIGITS else int(type_.precision - type_.scale)


def _merge_structs(left: pa.StructType, right: pa.StructType) -> pa.StructType:
    types = {field.name: field.type for field in left}
    spellings = {fold(name): name for name in types}
    for field in right:
        name = field.name if field.name in types else spellings.get(fold(field.name), field.name)
        types[name] = merge_types(types.get(name, pa.null()), field.type)
    return pa.struct([pa.field(name, type_) for name, type_ in types.items()])


def object_type(types: dict[str, pa.DataType]) -> pa.StructType:
    """Returns the type of an object. Raises PlanError for names that differ only by case."""
    names: dict[str, str] = {}
    for name in types:
        other = names.setdefault(fold(name), name)
        if other != name:
            raise ambiguous_names(other, name)
    return pa.struct([pa.field(name, type_) for name, type_ in types.items()])


def column_of(name: str, type_: pa.DataType) -> pa.Field:
    """Returns a column of an inferred type. Null and an empty object are STRING.

    A DECIMAL has as many digits as possible.
    """
    if pa.types.is_struct(type_) and type_.num_fields:
        return pa.field(name, pa.struct([column_of(field.name, field.type) for field in type_]))
    if is_list(type_):
        return pa.field(name, pa.list_(column_of("element", type_.value_type)))
    if type_ == _SMALL:
        return pa.field(name, pa.int64())
    if pa.types.is_decimal(type_):
        type_ = pa.decimal128(_MAX_DIGITS, type_.scale)
        return pa.field(name, type_, metadata=INEXACT_AS_DOUBLE)
    if type_ == pa.int64():
        return pa.field(name, type_, metadata=INEXACT_AS_DOUBLE)
    is_empty = pa.types.is_null(type_) or pa.types.is_struct(type_)
    return pa.field(name, pa.string() if is_empty else type_)
