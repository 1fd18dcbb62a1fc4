"""JSON texts to Arrow by arro3 (arrow-json), without the ways in which that loses information.

arrow-json cuts 1.5 to 1 for an integer and 1.239 to 1.23 for a decimal, takes numbers for
timestamps and dates, and binary as hexadecimal. So it is asked for wider types (`_wide`), which
are narrowed by exact casts. It also aborts the process when the text of an error holds a NUL or
quotes a value nested a million levels deep: such payloads are never shown to it (`_risky`).
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

from penstock.sdk.kit.arrays import Bytes, spans
from penstock.sdk.kit.columns import conform, is_list, leaves
from penstock.sdk.kit.values import Times, from_text

_DEEP = 10_000
_EXACT = float(2**53)
_SPACE = np.zeros(256, bool)
_SPACE[[9, 10, 13, 32]] = True
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Suspect(ValueError):
    """Texts that have to be looked at one by one."""


@dataclass(frozen=True)
class Reader:
    """Reads payloads of `schema`; all of them are right, or it raises some exception."""

    schema: pa.Schema
    times: Times = "iso"

    def read(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        """One row for each payload, exactly. Payloads may be surrounded by white space."""
        text, offsets = spans(payloads)
        if _risky(text, offsets) or not _framed(text, offsets):
            raise Suspect
        return self.parse(memoryview(text.data), len(payloads))

    def parse(self, text: memoryview | bytes, count: int) -> pa.RecordBatch:
        """The rows of `count` JSON objects one after the other."""
        rows = _native(text, pa.schema([self._wide(f) for f in self.schema]), count)
        exact = [f for f in self.schema if _needs_exact(f.type, rows.column(f.name))]
        if exact:
            again = _native(text, pa.schema([self._wide(f, exact=True) for f in exact]), count)
            for field in exact:
                _agree(rows.column(field.name), again.column(field.name))
                place = rows.schema.get_field_index(field.name)
                rows = rows.set_column(place, field.name, again.column(field.name))
        for field in self.schema:
            _no_twins(rows.column(field.name))
        return conform(rows, self.schema, self._narrow)

    def _wide(self, field: pa.Field, exact: bool = False) -> pa.Field:
        return pa.field(field.name, self._wide_type(field.type, exact))

    def _wide_type(self, type_: pa.DataType, exact: bool) -> pa.DataType:
        if pa.types.is_struct(type_):
            return pa.struct([self._wide(f, exact) for f in type_])
        if is_list(type_):
            return pa.list_(self._wide_type(type_.value_type, exact))
        if pa.types.is_map(type_):
            return pa.map_(pa.string(), self._wide_type(type_.item_type, exact))
        if pa.types.is_integer(type_):
            return pa.decimal128(38, 19) if exact else pa.float64()
        if pa.types.is_decimal(type_):
            return _wide_decimal(type_) if exact else pa.float64()
        if pa.types.is_timestamp(type_):
            return pa.string() if self.times == "iso" else pa.float64()
        if pa.types.is_date(type_) or pa.types.is_binary(type_) or pa.types.is_time(type_):
            return pa.string()
        return type_

    def _narrow(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        return from_text(array, type_, self.times)


def _native(text: memoryview | bytes, schema: pa.Schema, count: int) -> pa.RecordBatch:
    batches = pa.table(arro3.io.read_json(text, schema, batch_size=count + 1)).to_batches()
    if len(batches) != 1 or batches[0].num_rows != count:
        raise Suspect
    return batches[0]


def _risky(text: Bytes, offsets: npt.NDArray[np.int32]) -> bool:
    if (text == 0).any():
        return True
    if (text == 92).any() and b"\\u0000" in text.tobytes():
        return True
    lengths = np.diff(offsets)
    return any(
        _deep(text[offsets[i] : offsets[i + 1]].tobytes()) for i in np.flatnonzero(lengths > _DEEP)
    )


def _deep(payload: bytes) -> bool:
    """Whether it is nested more than 10,000 levels deep."""
    if payload.count(b"[") + payload.count(b"{") <= _DEEP:
        return False
    bare = np.frombuffer(_STRING.sub(b"", payload), np.uint8)
    step = np.zeros(256, np.int32)
    step[[91, 123]], step[[93, 125]] = 1, -1
    return bool(np.cumsum(step[bare]).max(initial=0) > _DEEP)


def _framed(text: Bytes, offsets: npt.NDArray[np.int32]) -> bool:
    """Whether objects can begin and end only where payloads do.

    arrow-json reads objects one after the other, wherever payloads end. Each payload starts with
    `{` and ends with `}`, and apart from the ends of payloads no `}` is followed by `{`: then as
    many objects as payloads are one in each payload.
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
    return _objects_that_follow(text, following) == len(last) - 1


def _objects_that_follow(text: Bytes, at: npt.NDArray[np.intp]) -> int:
    found = 0
    while len(at):
        space = _SPACE[text[at]]
        found += int((text[at[~space]] == 123).sum())
        at = at[space] + 1
        at = at[at < len(text)]
    return found


def _wide_decimal(type_: pa.DataType) -> pa.DataType:
    whole = type_.precision - type_.scale
    room = 38 - whole
    return pa.decimal128(38, room) if room - type_.scale >= 6 else pa.decimal256(76, 76 - whole)


def _needs_exact(type_: pa.DataType, approximate: pa.Array) -> bool:
    kinds = list(leaves(type_))
    if any(map(pa.types.is_decimal, kinds)):
        return True
    if pa.int64() not in kinds:
        return False
    return any(
        pc.any(pc.greater_equal(pc.abs(leaf), _EXACT)).as_py()
        for leaf in _flat(approximate)
        if pa.types.is_floating(leaf.type)
    )


def _agree(approximate: pa.Array, exact: pa.Array) -> None:
    """Raises where a decimal is far from the float that was read of the same text.

    arrow-json takes "e5" and 1e99999999999 for small decimals.
    """
    for near, leaf in zip(_flat(approximate), _flat(exact), strict=True):
        if pa.types.is_decimal(leaf.type):
            if pc.any(pc.invert(pc.is_finite(near))).as_py():
                raise Suspect
            gap = pc.abs(pc.subtract(near, leaf.cast(pa.float64())))
            bound = pc.add(pc.multiply(pc.abs(near), 1e-9), 1e-9)
            if pc.any(pc.greater(gap, bound)).as_py():
                raise Suspect


def _flat(array: Any) -> Iterator[pa.Array]:
    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            yield from _flat(array.field(place))
    elif pa.types.is_map(array.type):
        yield from _flat(array.items)
    elif is_list(array.type):
        yield from _flat(array.values)
    else:
        yield array


def _no_twins(array: Any) -> None:
    """Raises where a map has a key twice."""
    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            _no_twins(array.field(place))
    elif pa.types.is_map(array.type):
        sizes = np.diff(array.offsets.to_numpy())
        rows = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        keys = array.keys.dictionary_encode()
        pairs = rows * max(len(keys.dictionary), 1) + keys.indices.to_numpy()
        if len(np.unique(pairs)) != len(pairs):
            raise Suspect
        _no_twins(array.items)
    elif is_list(array.type):
        _no_twins(array.values)
