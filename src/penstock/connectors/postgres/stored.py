"""The values that a column of PostgreSQL would round, cut or wrap without an error.

Source: https://www.postgresql.org/docs/current/datatype.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.postgres.literals import bounds, parse_array, parse_row
from penstock.connectors.postgres.structure import Structure
from penstock.core.errors import Rejected
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.values import check_second_digits

_NAME_BYTES = 63
_UNSIGNED = {"oid": 32, "xid": 32, "cid": 32, "xid8": 64}
"""The bits of unsigned integers, which wrap around."""
_FLOATS: Mapping[str, type[np.floating[Any]]] = {
    "real": np.float32,
    **dict.fromkeys(
        ("double precision", "point", "line", "lseg", "box", "path", "polygon", "circle"),
        np.float64,
    ),
}
_FLOAT = re.compile(r"[-+.\d][-+.\deE]*")
_MICROSECONDS = 6
_TIME = re.compile(r"(timestamp|time|interval)\b[^(]*(?:\((\d)\))?.*")
_NUMERIC = re.compile(r"numeric\((\d+),\s*(-?\d+)\)")
_TEXT = re.compile(r"character(?: varying)?\((\d+)\)")
_SMALLEST_UNITS = {
    "year": "(-?\\d+Y)*", "month": "(-?\\d+[YM])*", "day": "(-?\\d+[YMWD])*",
    "hour": "(-?\\d+[YMWD])*(T(-?\\d+H)*)?", "minute": "(-?\\d+[YMWD])*(T(-?\\d+[HM])*)?",
}  # fmt: skip
"""Durations of ISO 8601 that an interval of limited fields stores, by its smallest field."""
_IGNORED = {
    "date": r"\d:\d",
    "time": r"\d[-/.]\w+[-/.]\d|:\d\d(\.\d*)?\s*([ap]m\s*)?([-+]|z|[a-z]{3,})",
    "timestamp": r":\d\d(\.\d*)?\s*([ap]m\s*)?([-+]|z|[a-z]{3,})",
    "timetz": r"\d[-/.]\w+[-/.]\d",
}
"""Parts of a text that the server ignores, by the type: a time, a date, or a time zone."""


def check_stored(column: pa.Array, name: str, type_: Structure) -> None:
    """Raises Rejected for a value that a column `name` of a type would change in silence."""
    is_text = pa.types.is_string(column.type)
    if type_.kind == "plain":
        _check(column, name, type_)
    elif type_.kind == "array" and is_list(column.type):
        check_stored(column.flatten(), name, type_.parts[0])
    elif type_.kind == "array" and is_text:
        _check_texts(_parsed(column, _array_items), name, type_.parts[0])
    elif type_.kind == "range" and is_text:
        _check_texts(_parsed(column, bounds), name, type_.parts[0])
    elif type_.kind == "row" and is_text:
        rows = [row for row in _parsed(column, parse_row) if len(row) == len(type_.parts)]
        for part, values in zip_longest(type_.parts, zip(*rows, strict=True), fillvalue=()):
            assert isinstance(part, Structure)
            check_stored(pa.array(values, pa.string()), name, part)


def _check_texts(values: Iterable[list[str | None]], name: str, type_: Structure) -> None:
    check_stored(pa.array([text for each in values for text in each], pa.string()), name, type_)


def _parsed(column: pa.StringArray, parse: Callable[[str], list[Any]]) -> list[list[Any]]:
    """Parses texts. The server rejects a text that cannot be parsed."""
    found = []
    for text in column.to_pylist():
        if text is not None:
            with suppress(ValueError):
                found.append(parse(text))
    return found


def _array_items(text: str) -> list[str | None]:
    """Returns the items of an array of any dimensions and lower bounds."""
    open_ = parse_array(re.sub(r"^\s*(\[[-+\d:]+\])+\s*=", "", text))
    found = []
    while open_:
        item = open_.pop()
        if isinstance(item, list):
            open_ += item
        else:
            found.append(item)
    return found


def _check(column: pa.Array, name: str, type_: Structure) -> None:
    declared, is_text = type_.name, pa.types.is_string(column.type)
    if match := _TIME.fullmatch(declared):
        digits = int(match[2]) if match[2] else _MICROSECONDS
        if pa.types.is_timestamp(column.type):
            check_second_digits(column, name, digits)
        elif is_text:
            _check_time_text(column, name, declared, digits)
    elif declared == "date" and is_text:
        _check_ignored(column, name, "date")
    elif match := _NUMERIC.fullmatch(declared):
        _check_scale(column, name, int(match[2]))
    elif match := _TEXT.fullmatch(declared):
        _reject(pc.greater(pc.utf8_length(column), int(match[1])), name, f"{match[1]} characters")
    elif declared == "name":
        _reject(_is_longer(column, _NAME_BYTES), name, f"{_NAME_BYTES} bytes")
    elif declared == '"char"':
        is_octal = pc.match_substring_regex(column, r"^\\[0-7]{3}$")
        _reject(pc.and_(_is_longer(column, 1), pc.invert(is_octal)), name, "a single byte")
    elif declared in _UNSIGNED:
        _check_unsigned(column, name, 2 ** _UNSIGNED[declared] - 1)
    elif declared == "money" and type_.zero is not None:
        pattern, digits = _money(type_.zero)
        wrong = pc.invert(pc.match_substring_regex(column, pattern))
        _reject(wrong, name, f"amounts of {digits} decimal places, as {type_.zero}")
    elif declared in _FLOATS and is_text:
        wrong = [text is not None and _rounds(text, declared) for text in column.to_pylist()]
        _reject(pa.array(wrong, pa.bool_()), name, "the digits of a floating-point number")


def _check_unsigned(column: pa.Array, name: str, last: int) -> None:
    if pa.types.is_string(column.type):
        wrong = pa.array(
            [
                text is not None and not (re.fullmatch(r"\d+", text) and int(text) <= last)
                for text in column.to_pylist()
            ],
            pa.bool_(),
        )
    else:
        wrong = pc.or_(pc.less(column, 0), pc.greater(column, last))
    _reject(wrong, name, f"integers from 0 to {last}")


def _money(zero: str) -> tuple[str, int]:
    """Returns the pattern of amounts, and their decimal places, from the zero of the locale."""
    match = re.search(r"0(?:(\D+)(0+))?", zero)
    point, digits = (match[1] or ".", len(match[2] or "")) if match else (".", 2)
    point = re.escape(point)
    whole = rf"(\d+|\d{{1,3}}([^\d{point}]\d{{3}})+)"
    fraction = rf"({point}\d{{0,{digits}}}0*)"
    edge = rf"[^\d{point}]*"
    return f"^{edge}({whole}{fraction}?|{fraction}){edge}$", digits


def _rounds(text: str, declared: str) -> bool:
    """Returns whether a number of a text has digits that a floating-point number rounds."""
    for number in _FLOAT.findall(text):
        with suppress(ValueError, InvalidOperation):
            stored = _FLOATS[declared](number)
            if np.isfinite(stored) and Decimal(np.format_float_scientific(stored)) != Decimal(
                number
            ):
                return True
    return False


def _check_ignored(column: pa.StringArray, name: str, kind: str) -> None:
    wrong = pc.match_substring_regex(column, _IGNORED[kind], ignore_case=True)
    stored = {
        "date": "dates without a time", "time": "times without a date or a time zone",
        "timestamp": "times without a time zone", "timetz": "times without a date",
    }  # fmt: skip
    _reject(wrong, name, stored[kind])


def _check_time_text(column: pa.StringArray, name: str, declared: str, digits: int) -> None:
    wrong = pc.match_substring_regex(column, rf"\.\d{{{digits}}}\d*[1-9]|\d[eE]-")
    _reject(wrong, name, f"{digits} digits of a fraction of a second")
    kind = _TIME.fullmatch(declared)
    assert kind is not None
    if "with time zone" in declared:
        if kind[1] == "time":
            _check_ignored(column, name, "timetz")
    elif kind[1] in _IGNORED:
        _check_ignored(column, name, kind[1])
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
