"""Rows of decoded batches that hold invalid values, above all texts that are not UTF-8."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import error_text
from penstock.sdk.columns.type_names import is_list

Mask = npt.NDArray[np.bool_]
Indexes = npt.NDArray[np.int64]
Failures = list[tuple[int, DecodeError]]


def split_invalid(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Indexes, Failures]:
    """Returns the valid rows of a batch, their indexes, and the index and error of each other row.

    Raises DecodeError for a batch that is damaged as a whole.
    """
    indexes = np.arange(batch.num_rows)
    try:
        batch.validate(full=True)
        return batch, indexes, []
    except (pa.ArrowException, ValueError):
        pass
    errors: dict[int, DecodeError] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for index, error in _column_errors(name, column).items():
            errors.setdefault(index, error)
    if not errors:
        return batch, indexes, []
    keep = np.ones(batch.num_rows, bool)
    keep[list(errors)] = False
    return batch.filter(pa.array(keep)), indexes[keep], sorted(errors.items())


def _column_errors(name: str, column: pa.Array) -> dict[int, DecodeError]:
    """Returns the errors of rows by index. Raises DecodeError for a damaged column."""
    try:
        column.validate(full=True)
        return {}
    except (pa.ArrowException, ValueError) as error:
        damage = error
    try:
        _as_bytes(column).validate(full=True)
    except (pa.ArrowException, ValueError):
        return _row_errors(name, column, damage)
    not_utf8 = DecodeError(f'column "{name}" is not UTF-8', code="not-utf8")
    return {int(index): not_utf8 for index in np.flatnonzero(any_leaf(column, _invalid_texts))}


def _row_errors(name: str, column: pa.Array, damage: Exception) -> dict[int, DecodeError]:
    """Returns the errors of a column with other invalid values, such as decimals."""
    message = f'column "{name}": {error_text(damage)}'
    if not _is_fixed_width(column.type):
        raise DecodeError(message, code="corrupt-file")

    def attempt(start: int, stop: int) -> None:
        column.slice(start, stop - start).validate(full=True)

    def convert_error(error: Exception) -> DecodeError:
        return DecodeError(f'column "{name}": {error_text(error)}', code="wrong-type")

    parts = bisect_failures(len(column), attempt, convert_error)
    return {start: outcome for start, _, outcome in parts if isinstance(outcome, DecodeError)}


def _is_fixed_width(type_: pa.DataType) -> bool:
    flat = (pa.types.is_decimal, pa.types.is_temporal, pa.types.is_integer, pa.types.is_floating)
    return any(check(type_) for check in flat)


def _as_bytes(array: pa.Array) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        return _as_bytes(array.storage)
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, _as_bytes(array.dictionary))
    return array.view(_bytes_type(array.type))


def _bytes_type(type_: pa.DataType) -> pa.DataType:
    """Returns a type of the same layout with binary values in place of texts."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_bytes_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(
            type_.key_field.with_type(_bytes_type(type_.key_type)),
            type_.item_field.with_type(_bytes_type(type_.item_type)),
        )
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_bytes_type(type_.value_type)))
    if pa.types.is_large_list(type_):
        return pa.large_list(type_.value_field.with_type(_bytes_type(type_.value_type)))
    if pa.types.is_fixed_size_list(type_):
        field = type_.value_field.with_type(_bytes_type(type_.value_type))
        return pa.list_(field, type_.list_size)
    binary = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return binary.get(type_, type_)


def _invalid_texts(array: pa.Array) -> Mask:
    """Returns whether each text of a leaf is not UTF-8."""
    if array.type not in (pa.string(), pa.large_string(), pa.string_view()):
        return np.zeros(len(array), bool)
    values = array.view(_bytes_type(array.type)).to_pylist()
    return np.array([value is not None and not _is_utf8(value) for value in values], bool)


def any_leaf(array: Any, test: Callable[[pa.Array], Mask]) -> Mask:
    """Returns for each value whether a test is true for one of its leaves, which are not nested.

    The offsets of the array must be valid.
    """
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        return any_leaf(array.storage, test)
    if pa.types.is_dictionary(type_):
        found = np.append(any_leaf(array.dictionary, test), False)
        return np.take(found, np.asarray(array.indices.cast(pa.int64()).fill_null(len(found) - 1)))
    if pa.types.is_struct(type_):
        masks = [any_leaf(array.field(index), test) for index in range(type_.num_fields)]
        return any_of(len(array), masks)
    if pa.types.is_map(type_):
        offsets = array.offsets.to_numpy()
        keys, items = any_leaf(array.keys, test), any_leaf(array.items, test)
        return _any_between(keys, offsets) | _any_between(items, offsets)
    if is_list(type_):
        return _any_between(any_leaf(array.values, test), array.offsets.to_numpy())
    if pa.types.is_fixed_size_list(type_):
        offsets = np.arange(array.offset, array.offset + len(array) + 1) * type_.list_size
        return _any_between(any_leaf(array.values, test), offsets)
    return np.zeros(len(array), bool) if pa.types.is_nested(type_) else test(array)


def any_of(count: int, masks: Iterable[Mask]) -> Mask:
    """Returns whether one of the masks is true for each of `count` values."""
    found = np.zeros(count, bool)
    for mask in masks:
        found |= mask
    return found


def _any_between(mask: Mask, offsets: Any) -> Mask:
    """Returns whether the mask has a true value between each two consecutive offsets."""
    counts = np.concatenate([[0], np.cumsum(mask)])[offsets]
    return np.asarray(np.diff(counts) > 0)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
