"""Checks of values that ClickHouse would clamp, wrap, round or replace in silence.

Each check is of a whole column, so that all bad rows are found in one pass.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.clickhouse.declared import Declared, parse
from penstock.connectors.clickhouse.types import INTEGERS
from penstock.core.errors import RecordError, Rejected
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.types import declared_type

Found = tuple[np.ndarray, str]
"""Indexes of values, and the reason why they are bad."""
_WIDE = pa.decimal128(38, 0)
_DAY = 86_400
_FIRST_DAY = (dt.date(1900, 1, 1) - dt.date(1970, 1, 1)).days
_LAST_DAY = (dt.date(2299, 12, 31) - dt.date(1970, 1, 1)).days
_NANOSECONDS_END = 2**63 // 1000 - 1
_DIGITS = {"Int128": 38, "UInt128": 38, "Int256": 76, "UInt256": 77}
_PATTERNS = {
    "UUID": r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
    "IPv4": r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$",
    "IPv6": r"^[0-9A-Fa-f:.]+$",
    "Time": r"^-?\d{1,3}:\d\d:\d\d$",
}


def invalid_rows(rows: pa.RecordBatch, target: pa.Schema) -> Mapping[int, RecordError]:
    """Returns the rows that the columns of a table cannot store as they are, with the reasons."""
    errors: dict[int, RecordError] = {}
    for column, field in zip(rows.columns, rows.schema, strict=True):
        declared = declared_type(target.field(field.name))
        for indexes, reason in _bad(column, parse(declared)):
            for index in indexes.tolist():
                message = f'column "{field.name}" of the type {declared}: {reason}'
                errors.setdefault(index, Rejected(message, code="wrong-type"))
    return errors


def _bad(array: pa.Array, type_: Declared) -> Iterator[Found]:
    if array.null_count and not type_.nullable:
        yield _indexes(array.is_null()), "the value is null, and the column is not Nullable"
    if is_list(array.type) or pa.types.is_map(array.type):
        yield from _bad_items(array, type_)
    elif pa.types.is_struct(array.type):
        mask = array.is_valid()
        for child, (name, part) in zip(array.flatten(), type_.parts, strict=True):
            for indexes, reason in _bad(child, part):
                inside = indexes[mask.to_numpy(zero_copy_only=False)[indexes]]
                if len(inside):
                    yield inside, f"field {name}: {reason}"
    else:
        for mask, reason in _bad_leaves(array, type_):
            indexes = _indexes(mask)
            if len(indexes):
                yield indexes, reason


def _bad_items(array: pa.Array, type_: Declared) -> Iterator[Found]:
    offsets = array.offsets.to_numpy()
    lengths = np.diff(offsets)
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    start, stop = int(offsets[0]), int(offsets[-1])
    parents = np.repeat(np.arange(len(array)), np.diff(offsets))
    used = np.repeat(lengths > 0, np.diff(offsets))
    parts = [part for _, part in type_.parts]
    if pa.types.is_map(array.type):
        children = [array.keys[start:stop], array.items[start:stop]]
    else:
        children = [array.values[start:stop]]
        if type_.name == "Nested":
            parts = [Declared("Tuple", type_.arguments)]
    for child, part in zip(children, parts, strict=True):
        for indexes, reason in _bad(child, part):
            yield np.unique(parents[indexes[used[indexes]]]), reason


def _bad_leaves(array: pa.Array, type_: Declared) -> Iterator[tuple[pa.BooleanArray, str]]:
    """Yields masks of bad values. A mask is null where the value is."""
    name = type_.name
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        yield from _bad_texts(array, type_)
    elif pa.types.is_date(array.type):
        days = array.cast(pa.int32())
        first, last = (0, 65_535) if name == "Date" else (_FIRST_DAY, _LAST_DAY)
        yield _outside(days, first, last), _range_text("dates", _date(first), _date(last))
    elif pa.types.is_timestamp(array.type):
        yield from _bad_times(array.cast(pa.timestamp("us", array.type.tz)), type_)
    elif name in INTEGERS and not pa.types.is_boolean(array.type):
        first, last = _bounds(name)
        yield _outside(array, first, last), _range_text("integers", first, last)
    elif name == "Decimal":
        precision, scale = map(int, type_.arguments)
        end = Decimal(10) ** (precision - scale)
        reason = f"expected {precision - scale} digits at most before the decimal point"
        yield _outside(array, -end, end, open_=True), reason
    elif name == "BFloat16":
        floats = array.to_numpy(zero_copy_only=False).astype(np.float32)
        is_rounded = (floats.view(np.uint32) & 0xFFFF != 0) & ~np.isnan(floats)
        yield pa.array(is_rounded), "expected a number with 8 significant bits at most"


def _bad_texts(array: pa.Array, type_: Declared) -> Iterator[tuple[pa.BooleanArray, str]]:
    name = type_.name
    if name == "FixedString":
        length = pc.binary_length(array)
        yield pc.not_equal(length, type_.number), f"expected {type_.number} bytes"
    elif name.startswith("Enum"):
        known = pc.is_in(array, value_set=pa.array(type_.labels, array.type))
        yield pc.and_(array.is_valid(), pc.invert(known)), "expected a value of the enumeration"
    elif name in _DIGITS:
        sign = "" if name.startswith("U") else "-?"
        first, last = _bounds(name)
        reason = _range_text("integers", first, last)
        pattern = f"^{sign}0*[0-9]{{1,{_DIGITS[name] + 2}}}$"
        wrong = pc.invert(pc.match_substring_regex(array, pattern))
        yield wrong, reason
        long = _indexes(pc.greater_equal(pc.utf8_length(array), _DIGITS[name]))
        beyond = np.zeros(len(array), dtype=bool)
        skipped = {*_indexes(wrong).tolist()}
        for index in long.tolist():
            if index not in skipped:
                beyond[index] = not first <= int(array[index].as_py()) <= last
        yield pa.array(beyond), reason
    elif name == "Decimal":
        precision, scale = map(int, type_.arguments)
        fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
        pattern = rf"^-?0*[0-9]{{1,{max(1, precision - scale)}}}{fraction}$"
        reason = f"expected a number of {precision} digits, {scale} of them decimal places"
        yield pc.invert(pc.match_substring_regex(array, pattern)), reason
    elif name in _PATTERNS:
        reason = f"the text is no {name}"
        yield pc.invert(pc.match_substring_regex(array, _PATTERNS[name])), reason


def _bad_times(times: pa.Array, type_: Declared) -> Iterator[tuple[pa.BooleanArray, str]]:
    micros = times.cast(pa.int64())
    if type_.name == "DateTime":
        digits, first, last = 0, 0, 2**32 * 10**6 - 1
    else:
        digits = 3 if type_.number is None else type_.number
        first, last = _FIRST_DAY * _DAY * 10**6, (_LAST_DAY + 1) * _DAY * 10**6 - 1
        if digits == 9:
            last = _NANOSECONDS_END
    reason = _range_text("times", _time(first), _time(last))
    yield _outside(micros, first, last), reason
    if digits < 6:
        unit = 10 ** (6 - digits)
        whole = pc.multiply(pc.divide(micros, unit), unit)
        yield (
            pc.not_equal(micros, whole),
            f"it stores {digits} digits of a fraction of a second, and the time has more",
        )


def _outside(
    array: pa.Array, first: int | Decimal, last: int | Decimal, *, open_: bool = False
) -> pa.BooleanArray:
    """Returns which numbers are outside a range; `open_` excludes its ends."""
    if pa.types.is_integer(array.type) and not open_:
        array = array.cast(pa.int64())
        low, high = max(int(first), -(2**63)), min(int(last), 2**63 - 1)
        return pc.or_(pc.less(array, low), pc.greater(array, high))
    exact = array.cast(_WIDE) if pa.types.is_integer(array.type) else array
    scale = exact.type.scale
    limit = Decimal(10) ** (38 - scale) - 1
    low, high = max(Decimal(first), -limit), min(Decimal(last), limit)
    wide = exact.cast(pa.decimal256(76, scale))
    low_, high_ = (pa.scalar(each, pa.decimal256(76, scale)) for each in (low, high))
    if open_:
        is_open = Decimal(last) <= limit
        less, greater = (pc.less_equal, pc.greater_equal) if is_open else (pc.less, pc.greater)
        return pc.or_(less(wide, low_), greater(wide, high_))
    return pc.or_(pc.less(wide, low_), pc.greater(wide, high_))


def _bounds(name: str) -> tuple[int, int]:
    bits = int(name.rpartition("t")[2])
    return (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _indexes(mask: pa.BooleanArray) -> np.ndarray:
    indexes: np.ndarray = pc.indices_nonzero(mask).to_numpy()
    return indexes


def _range_text(what: str, first: object, last: object) -> str:
    return f"expected {what} from {first} to {last}"


def _date(days: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days)).isoformat()


def _time(micros: int) -> str:
    at = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    return at.isoformat(" ", "seconds")
