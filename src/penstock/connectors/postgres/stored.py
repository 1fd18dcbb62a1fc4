"""The values that a column of PostgreSQL would round, cut or wrap without an error.

Source: https://www.postgresql.org/docs/current/datatype.html
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import Rejected
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.types import declared_type
from penstock.sdk.database.values import check_second_digits

_NAME_BYTES = 63
_MAX_OID = 2**32 - 1
_MICROSECONDS = 6
_TIME = re.compile(r"(timestamp|time|interval)\b[^(]*(?:\((\d)\))?.*")
_NUMERIC = re.compile(r"numeric\((\d+),\s*(-?\d+)\)")
_TEXT = re.compile(r"character(?: varying)?\((\d+)\)")
_SMALLEST_UNITS = {
    "year": "(-?\\d+Y)*", "month": "(-?\\d+[YM])*", "day": "(-?\\d+[YMWD])*",
    "hour": "(-?\\d+[YMWD])*(T(-?\\d+H)*)?", "minute": "(-?\\d+[YMWD])*(T(-?\\d+[HM])*)?",
}  # fmt: skip
"""Durations of ISO 8601 that an interval of limited fields stores, by its smallest field."""
_MONEY = r"^[^.,]*\.\d{3,}\D*$"
"""A fraction of more than two digits. In another form a point may separate thousands."""


def check_stored(column: pa.Array, target: pa.Field) -> None:
    """Raises Rejected for a value that a column of the table would change in silence."""
    _check(column, target.name, declared_type(target))


def _check(column: pa.Array, name: str, declared: str) -> None:
    if is_list(column.type):
        if declared.endswith("[]"):
            _check(column.flatten(), name, declared.removesuffix("[]"))
    elif match := _TIME.fullmatch(declared):
        digits = int(match[2]) if match[2] else _MICROSECONDS
        if pa.types.is_timestamp(column.type):
            check_second_digits(column, name, digits)
        elif pa.types.is_string(column.type):
            _check_time_text(column, name, declared, digits)
    elif match := _NUMERIC.fullmatch(declared):
        _check_scale(column, name, int(match[2]))
    elif match := _TEXT.fullmatch(declared):
        _reject(pc.greater(pc.utf8_length(column), int(match[1])), name, f"{match[1]} characters")
    elif declared == "name":
        _reject(_is_longer(column, _NAME_BYTES), name, f"{_NAME_BYTES} bytes")
    elif declared == '"char"':
        is_octal = pc.match_substring_regex(column, r"^\\[0-7]{3}$")
        _reject(pc.and_(_is_longer(column, 1), pc.invert(is_octal)), name, "a single byte")
    elif declared == "oid":
        wrong = pc.or_(pc.less(column, 0), pc.greater(column, _MAX_OID))
        _reject(wrong, name, f"integers from 0 to {_MAX_OID}")
    elif declared == "money":
        _reject(pc.match_substring_regex(column, _MONEY), name, "amounts of two decimal places")


def _check_time_text(column: pa.StringArray, name: str, declared: str, digits: int) -> None:
    wrong = pc.match_substring_regex(column, rf"\.\d{{{digits}}}\d*[1-9]|\d[eE]-")
    _reject(wrong, name, f"{digits} digits of a fraction of a second")
    smallest = declared.rpartition(" ")[2]
    if declared.startswith("interval ") and smallest in _SMALLEST_UNITS:
        wrong = pc.invert(
            pc.match_substring_regex(column, f"^(P{_SMALLEST_UNITS[smallest]}|PT0S)$")
        )
        _reject(wrong, name, f"durations as P2Y, in {smallest}s or longer units")


def _check_scale(column: pa.Array, name: str, scale: int) -> None:
    if pa.types.is_string(column.type):
        is_plain = pc.match_substring_regex(column, rf"^-?\d+(\.\d{{1,{scale or 1}}}0*)?$")
        if scale > 0 and pc.all(is_plain).as_py() is not False:
            return
    elif scale >= 0:
        return
    wrong = [value is not None and _scale_of(value) > scale for value in column.to_pylist()]
    if scale < 0:
        _reject(pa.array(wrong), name, f"multiples of {10**-scale}")
    else:
        _reject(pa.array(wrong), name, f"{scale} decimal places")


def _scale_of(value: str | Decimal) -> int:
    """Returns the decimal places of a number; that of 100 is -2. A text that is none has 0."""
    try:
        _, digits, exponent = Decimal(value).as_tuple()
    except InvalidOperation:
        return 0
    if not isinstance(exponent, int) or not any(digits):
        return -(2**31)
    return -exponent - next(place for place, digit in enumerate(reversed(digits)) if digit)


def _is_longer(column: pa.StringArray, count: int) -> pa.BooleanArray:
    return pc.greater(pc.binary_length(column), count)


def _reject(wrong: pa.BooleanArray, name: str, stored: str) -> None:
    if pc.any(wrong).as_py():
        raise Rejected(
            f'column "{name}" of the table stores {stored}', code="wrong-type",
            hint="Change the type of the column, or convert the value in a transform.",
        )  # fmt: skip
