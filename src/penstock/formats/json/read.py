"""JSON texts to Arrow by arro3 (arrow-json), without its losses of information.

arrow-json truncates 1.5 to the integer 1 and 1.239 to the decimal 1.23, accepts numbers as
timestamps and dates, and reads binary as hexadecimal. Therefore it reads wider types (`_wide`),
which are narrowed by exact casts. arrow-json also aborts the process if the text of an error
contains NUL or a value nested a million levels deep, and confuses escaped characters from U+20000:
such payloads bypass arrow-json (`_is_risky`), as do numbers with more digits than `_wide` has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import arro3.io
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.panics import panics_as_exceptions
from penstock.formats.json.decimals import Decimals, read_decimals
from penstock.formats.json.digits import (
    FRACTION_DIGITS,
    has_confused_characters,
    may_lose_digits,
)
from penstock.formats.json.spelling import respell
from penstock.sdk.columns.binary_arrays import Bytes, values_and_offsets
from penstock.sdk.columns.conform import conform, leaf_types
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.columns.json_mark import has_json
from penstock.sdk.columns.scalar_parsing import ISO, TimeForm
from penstock.sdk.columns.type_names import is_list

_WIDE = pa.decimal128(38, 19)
_WIDE_NANOS = pa.decimal128(38, 16)
_DEEP = 10_000
_EXACT = float(2**53)
_EXACT_TIMES = {"seconds": float(2**33), "millis": 2**33 * 1e3}
"""The numbers, of the year 2242, from which a float of a time with microseconds may be whole."""
_SPACE = np.zeros(256, bool)
_SPACE[[9, 10, 13, 32]] = True
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Suspect(ValueError):
    """The error of texts that require the fallback."""


@dataclass(frozen=True)
class Reader:
    """A bulk reader of payloads of `schema`. Raises any exception for an invalid payload."""

    schema: pa.Schema
    form: TimeForm = ISO
    decimals: Decimals = "number"

    def read(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        """Returns one row per payload. White space around payloads is allowed."""
        if any(map(has_json, self.schema)):
            raise Suspect
        text, offsets = values_and_offsets(payloads)
        if _is_risky(text, offsets) or not _is_framed(text, offsets):
            raise Suspect
        view, count = memoryview(text.data), len(payloads)
        if may_lose_digits(text, self.schema, self.form.times, self.decimals):
            raise Suspect
        wide = self._read_wide(view, count, self.schema)
        respelled = respell(self.schema, wide, view)
        while respelled is not None:
            wide = self._read_wide(view, count, respelled)
            respelled = respell(respelled, wide, view)
        rows = conform(wide, self.schema, self._narrow)
        if any(_is_infinite(column) for column in rows.columns):
            raise Suspect
        return rows

    def parse(self, text: memoryview | bytes, count: int) -> pa.RecordBatch:
        """Returns the rows of `count` concatenated JSON objects, with keys as the columns."""
        return conform(self._read_wide(text, count, self.schema), self.schema, self._narrow)

    def _read_wide(self, text: memoryview | bytes, count: int, schema: pa.Schema) -> pa.RecordBatch:
        rows = _read_json(text, pa.schema([self._wide(field) for field in schema]), count)
        exact = [
            field for field in schema if self._needs_exact(field.type, rows.column(field.name))
        ]
        if exact:
            exact_rows = _read_json(
                text, pa.schema([self._wide(field, exact=True) for field in exact]), count
            )
            for field in exact:
                _check_agreement(rows.column(field.name), exact_rows.column(field.name))
                index = rows.schema.get_field_index(field.name)
                rows = rows.set_column(index, field.name, exact_rows.column(field.name))
        for field in schema:
            _check_duplicate_fields(rows.column(field.name))
        return rows

    def _wide(self, field: pa.Field, exact: bool = False) -> pa.Field:
        return pa.field(field.name, self._wide_type(field.type, exact))

    def _wide_type(self, type_: pa.DataType, exact: bool) -> pa.DataType:
        if pa.types.is_struct(type_):
            return pa.struct([self._wide(field, exact) for field in type_])
        if is_list(type_):
            return pa.list_(self._wide_type(type_.value_type, exact))
        if pa.types.is_map(type_):
            return pa.map_(pa.string(), self._wide_type(type_.item_type, exact))
        if pa.types.is_integer(type_):
            return _WIDE if exact else pa.float64()
        if pa.types.is_decimal(type_):
            if self.decimals == "bytes":
                return pa.string()
            return _wide_decimal(type_) if exact else pa.float64()
        if pa.types.is_timestamp(type_):
            if self.form.times == "iso":
                return pa.string()
            wide = _WIDE_NANOS if self.form.times == "nanos" else _WIDE
            return wide if exact else pa.float64()
        if pa.types.is_date(type_) or pa.types.is_binary(type_) or pa.types.is_time(type_):
            return pa.string()
        return type_

    def _needs_exact(self, type_: pa.DataType, approximate: pa.Array) -> bool:
        """Returns whether numbers read as floats may differ from their text."""
        kinds = list(leaf_types(type_))
        if any(map(pa.types.is_decimal, kinds)) and self.decimals != "bytes":
            return True
        has_times = self.form.times != "iso" and any(map(pa.types.is_timestamp, kinds))
        if not has_times and pa.int64() not in kinds:
            return False
        bound = _EXACT_TIMES.get(self.form.times, _EXACT) if has_times else _EXACT
        leaves = [leaf for leaf in _leaf_arrays(approximate) if pa.types.is_floating(leaf.type)]
        return any(
            pc.any(pc.greater_equal(pc.abs(leaf), bound)).as_py()
            or (has_times and pc.any(pc.not_equal(pc.floor(leaf), leaf)).as_py())
            for leaf in leaves
        )

    def _narrow(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        if pa.types.is_decimal(type_) and self.decimals == "bytes":
            return read_decimals(array, type_)
        return TextConversion(self.form)(array, type_)


def _read_json(text: memoryview | bytes, schema: pa.Schema, count: int) -> pa.RecordBatch:
    with panics_as_exceptions():
        batches = pa.table(arro3.io.read_json(text, schema, batch_size=count + 1)).to_batches()
    if len(batches) != 1 or batches[0].num_rows != count:
        raise Suspect
    return batches[0]


def _is_risky(text: Bytes, offsets: npt.NDArray[np.int32]) -> bool:
    if (text == 0).any():
        return True
    if (text == 92).any():
        content = text.tobytes()
        if b"\\u0000" in content or has_confused_characters(content):
            return True
    lengths = np.diff(offsets)
    return any(
        _is_deep(text[offsets[index] : offsets[index + 1]].tobytes())
        for index in np.flatnonzero(lengths > _DEEP)
    )


def _is_deep(payload: bytes) -> bool:
    """Returns whether a payload is nested more than 10,000 levels deep."""
    if payload.count(b"[") + payload.count(b"{") <= _DEEP:
        return False
    bare = np.frombuffer(_STRING.sub(b"", payload), np.uint8)
    step = np.zeros(256, np.int32)
    step[[91, 123]], step[[93, 125]] = 1, -1
    return bool(np.cumsum(step[bare]).max(initial=0) > _DEEP)


def _is_framed(text: Bytes, offsets: npt.NDArray[np.int32]) -> bool:
    """Returns whether every payload is exactly one object.

    arrow-json reads concatenated objects regardless of the boundaries of payloads. If each payload
    starts with `{` and ends with `}`, and `}` is followed by `{` at boundaries only, equal numbers
    of objects and payloads mean one object per payload.
    """
    first, last = offsets[:-1].copy(), offsets[1:] - 1
    if (last < first).any():
        return False
    for _ in range(8):
        before, after = _SPACE[text[first]], _SPACE[text[last]]
        if not (before.any() or after.any()):
            break
        first = np.minimum(first + before, last)
        last = np.maximum(last - after, first)
    if not ((text[first] == 123).all() and (text[last] == 125).all()):
        return False
    following = np.flatnonzero(text[:-1] == 125) + 1
    following = following[_SPACE[text[following]] | (text[following] == 123)]
    if len(following) == len(last) - 1:
        return True
    return _count_following_objects(text, following) == len(last) - 1


def _count_following_objects(text: Bytes, positions: npt.NDArray[np.intp]) -> int:
    count = 0
    while len(positions):
        space = _SPACE[text[positions]]
        count += int((text[positions[~space]] == 123).sum())
        positions = positions[space] + 1
        positions = positions[positions < len(text)]
    return count


def _wide_decimal(type_: pa.DataType) -> pa.DataType:
    digits = type_.precision - type_.scale
    scale = 38 - digits
    return pa.decimal128(38, scale) if scale >= FRACTION_DIGITS else pa.decimal256(76, 76 - digits)


def _is_infinite(array: pa.Array) -> bool:
    """Returns whether a value of an array is infinite, which may be a number out of range."""
    return any(
        pa.types.is_floating(leaf.type) and pc.any(pc.is_inf(leaf)).as_py()
        for leaf in _leaf_arrays(array)
    )


def _check_agreement(approximate: pa.Array, exact: pa.Array) -> None:
    """Raises Suspect if a decimal differs from the float read from the same text.

    arrow-json reads "e5" and 1e99999999999 as small decimals.
    """
    for rough, exact_leaf in zip(_leaf_arrays(approximate), _leaf_arrays(exact), strict=True):
        if pa.types.is_decimal(exact_leaf.type):
            if pc.any(pc.invert(pc.is_finite(rough))).as_py():
                raise Suspect
            gap = pc.abs(pc.subtract(rough, exact_leaf.cast(pa.float64())))
            bound = pc.add(pc.multiply(pc.abs(rough), 1e-9), 1e-9)
            if pc.any(pc.greater(gap, bound)).as_py():
                raise Suspect


def _leaf_arrays(array: Any) -> Iterator[pa.Array]:
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            yield from _leaf_arrays(array.field(index))
    elif pa.types.is_map(array.type):
        yield from _leaf_arrays(array.items)
    elif is_list(array.type):
        yield from _leaf_arrays(array.values)
    else:
        yield array


def _check_duplicate_fields(array: Any) -> None:
    """Raises Suspect for duplicate keys of a map."""
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            _check_duplicate_fields(array.field(index))
    elif pa.types.is_map(array.type):
        sizes = np.diff(array.offsets.to_numpy())
        rows = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        keys = array.keys.dictionary_encode()
        pairs = rows * max(len(keys.dictionary), 1) + keys.indices.to_numpy()
        if len(np.unique(pairs)) != len(pairs):
            raise Suspect
        _check_duplicate_fields(array.items)
    elif is_list(array.type):
        _check_duplicate_fields(array.values)
