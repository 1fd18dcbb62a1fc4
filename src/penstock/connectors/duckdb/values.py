"""Values of DuckDB as rows, and checks of values that a column would round."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.duckdb.types import WHOLE_NUMBERS, members, type_of
from penstock.core.errors import Rejected
from penstock.sdk.columns.conform import WrongType, conform, rebuild
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.types import declared_type
from penstock.sdk.database.values import check_second_digits, time_text

_SECOND_DIGITS = {"timestamp_s": 0, "timestamp_ms": 3}
_TIMES = ("TIME", "TIME WITH TIME ZONE", "INTERVAL")
_ROUNDING = re.compile(r"\b(TIMESTAMP_S|TIMESTAMP_MS|TIME|INTERVAL|U?HUGEINT|BIGNUM|UNION)\b")
"""Types that round some values of rows, or have no place for them."""
_FIRST, _END = np.datetime64("0001-01-01"), np.datetime64("10000-01-01")
_FINER_THAN_MICROSECONDS = r"\.[0-9]{6}[0-9]*[1-9]"
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"


class _Beyond(WrongType):
    """A time that rows do not have."""

    def value_text(self, index: int) -> str:
        return time_text(self.array[index])

    @property
    def hint(self) -> str | None:
        return "Declare the column as STRING in schema, or convert it in query."


class _Conversion(Conversion):
    """A conversion of values of DuckDB."""

    def __call__(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        if pa.types.is_union(array.type) and pa.types.is_struct(type_):
            return rebuild(_members(array), type_, self)
        is_time = pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)
        if is_time and not is_within_years(array):
            if pa.types.is_string(type_):
                return pa.array([time_text(v) if v.is_valid else None for v in array], type_)
            raise _Beyond(array, type_, self)
        try:
            return super().__call__(array, type_)
        except pa.ArrowException:
            if is_time and not pa.types.is_nested(type_):
                raise _Beyond(array, type_, super().__call__) from None
            raise


_CONVERSION = _Conversion()


def to_rows(values: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Converts values of a query to `columns`. Raises ArrowInvalid for one that does not fit."""
    return conform(values, columns, _CONVERSION)


def is_within_years(times: pa.Array) -> bool:
    """Returns whether dates or timestamps are within the years 1 to 9999, and finite."""
    unit = "D" if pa.types.is_date(times.type) else times.type.unit
    if unit == "ns":
        first, last = -(2**63) + 2, 2**63 - 2  # the range of nanoseconds is within the years
    else:
        first = int(_FIRST.astype(f"datetime64[{unit}]").astype(int))
        last = int(_END.astype(f"datetime64[{unit}]").astype(int)) - 1
    numbers = times.cast(pa.int32() if unit == "D" else pa.int64())
    found = pc.min_max(numbers)
    if not found["min"].is_valid:
        return True
    return bool(first <= found["min"].as_py() and found["max"].as_py() <= last)


def _members(array: pa.UnionArray) -> pa.StructArray:
    """Returns a UNION as a struct, whose fields are null except the member of each value."""
    # `type_codes` ignores the offset of a slice.
    codes = pa.Array.from_buffers(
        pa.int8(), len(array), [None, array.buffers()[1]], offset=array.offset
    )
    fields = [array.type.field(index) for index in range(array.type.num_fields)]
    children = [
        pc.if_else(pc.equal(codes, code), array.field(index), pa.scalar(None, field.type))
        for index, (code, field) in enumerate(zip(array.type.type_codes, fields, strict=True))
    ]
    is_null = children[0].is_null()
    for child in children[1:]:
        is_null = pc.and_(is_null, child.is_null())
    return pa.StructArray.from_arrays(children, fields=fields, mask=is_null)


def check_values(rows: pa.RecordBatch, target: pa.Schema) -> None:
    """Raises Rejected for a value that a column of the table would round."""
    for column, field in zip(rows.columns, rows.schema, strict=True):
        declared = declared_type(target.field(field.name))
        if _ROUNDING.search(declared):
            _check(column, field.name, type_of(declared))


def _check(column: pa.Array, name: str, type_: Any) -> None:
    if is_list(column.type):
        _check(column.flatten(), name, type_.children[0][1])
    elif pa.types.is_map(column.type):
        used = slice(column.offsets[0].as_py(), column.offsets[-1].as_py())
        for part, (_, of_part) in zip((column.keys, column.items), type_.children, strict=True):
            _check(part[used], name, of_part)
    elif pa.types.is_struct(column.type):
        if type_.id == "union":
            _check_one_member(column, name)
        types = dict(members(type_))
        for field, part in zip(column.type, column.flatten(), strict=True):
            _check(part, name, types[field.name])
    elif pa.types.is_timestamp(column.type):
        check_second_digits(column, name, _SECOND_DIGITS.get(type_.id, 6))
    elif pa.types.is_string(column.type):
        _check_text(column, name, str(type_))


def _check_text(column: pa.StringArray, name: str, declared: str) -> None:
    if declared in WHOLE_NUMBERS:
        if pc.all(pc.match_substring_regex(column, _INTEGER)).as_py() is False:
            raise Rejected(
                f'column "{name}": expected an integer for {declared}', code="wrong-type"
            )
    elif (
        declared in _TIMES
        and pc.any(pc.match_substring_regex(column, _FINER_THAN_MICROSECONDS)).as_py()
    ):
        raise Rejected(
            f'column "{name}" of the table stores 6 digits of a fraction of a second, and the time '
            "has more",
            code="wrong-type",
        )


def _check_one_member(structs: pa.StructArray, name: str) -> None:
    counts = pa.repeat(0, len(structs))
    for child in structs.flatten():
        counts = pc.add(counts, child.is_valid().cast(pa.int64()))
    if pc.any(pc.greater(counts, 1)).as_py():
        raise Rejected(
            f'column "{name}": expected a value in one field for a UNION', code="wrong-type"
        )
