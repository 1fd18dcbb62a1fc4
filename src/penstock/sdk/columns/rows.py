"""Rows as Python dicts, converted to Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError, UserError
from penstock.core.text import shorten
from penstock.sdk.columns.conform import Leaf, WrongType, decode_error, rebuild
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.decimal_arrays import decimal_array
from penstock.sdk.columns.json_mark import has_json
from penstock.sdk.columns.json_text import text_value
from penstock.sdk.columns.names import AmbiguousName, check_distinct, fold
from penstock.sdk.columns.type_names import sql_name, with_article

Row = Mapping[str, Any]
_NEAREST = Conversion(nearest=True)
INVALID = (pa.ArrowException, TypeError, ValueError, OverflowError)


def infer_rows(rows: Sequence[Row]) -> pa.Schema:
    """Infers the columns of rows in order of appearance. Timestamps are UTC. Raises UserError."""
    spellings: dict[str, str] = {}
    for row in rows:
        check_distinct(pa.field(name, pa.null()) for name in row)
        for name in row:
            spellings.setdefault(fold(name), name)
    names = list(spellings.values())
    rows = _spelled(rows, names)
    return pa.schema([(name, _infer(name, [row.get(name) for row in rows])) for name in names])


def _spelled(rows: Sequence[Row], names: Sequence[str]) -> Sequence[Row]:
    """Returns rows with these names in place of those that differ only by case."""
    others = {key for row in rows for key in row}.difference(names)
    by_fold = {fold(name): name for name in names}
    spellings = {key: by_fold[fold(key)] for key in others if fold(key) in by_fold}
    return [_respell(row, spellings) for row in rows] if spellings else rows


def _respell(row: Row, spellings: Mapping[str, str]) -> Row:
    spelled = dict(row)
    used: dict[str, str] = {}
    for key, name in spellings.items():
        if key not in row or row[key] is None or row.get(name) is not None:
            continue
        if name in used:
            error = AmbiguousName(name, sorted([used[name], key]))
            raise DecodeError(str(error), code="ambiguous-column")
        spelled[name], used[name] = row[key], key
    return spelled


def _infer(name: str, values: list[Any]) -> pa.DataType:
    try:
        type_ = pa.array(values).type
    except OverflowError as error:
        raise UserError(
            f'column "{name}": expected integers of 64 bits, found a larger one',
            code="integer-too-large",
            hint="Declare the column in schema, as in DECIMAL(38,0), DOUBLE or STRING.",
        ) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError(
            f'column "{name}" has values of different types',
            code="mixed-types",
            detail=str(error),
            hint="Use one type for the column, or declare the column in schema.",
        ) from error
    if pa.types.is_null(type_):
        return pa.string()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz="UTC")
    return type_


def batch_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Converts rows to a batch of exactly `schema`; missing values are null. Raises DecodeError."""
    rows = _spelled(rows, schema.names)
    columns = [column([row.get(field.name) for row in rows], field) for field in schema]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.record_batch(columns, schema=schema)


def column(values: Iterable[Any], field: pa.Field) -> pa.Array:
    """Converts values to the type of a field, by a cast if needed. Raises DecodeError."""
    found = values if isinstance(values, list) else [*values]
    try:
        if has_json(field):
            found = [text_value(value, field) for value in found]
        return array_of(found, field.type)
    except WrongType as error:
        raise decode_error(error.within(field.name)) from error
    except INVALID as error:
        value = shorten(str(found[0]), 100) if len(found) == 1 else "a value"
        raise DecodeError(
            f'column "{field.name}": {value} is not {with_article(sql_name(field.type))}',
            code="wrong-type", detail=str(error),
        ) from error  # fmt: skip


def array_of(values: Sequence[Any], type_: pa.DataType, leaf: Leaf = _NEAREST) -> pa.Array:
    """Converts values to an array of a type without loss. Raises errors of `INVALID`.

    `leaf` converts arrays that are not nested.
    """
    if _has_map(type_):
        return _nested_array(values, type_, leaf)
    try:
        array = pa.array(values)
        is_uniform = not _mixes_times(array.type, values)
    except INVALID:
        is_uniform = False
    if is_uniform:
        return rebuild(array, type_, leaf)
    if len(values) > 1:
        return pa.concat_arrays([array_of([value], type_, leaf) for value in values])
    if pa.types.is_decimal(type_) and isinstance(values[0], Decimal):
        return decimal_array(values, type_)
    return (
        _nested_array(values, type_, leaf) if pa.types.is_nested(type_) else pa.array(values, type_)
    )


def _mixes_times(type_: pa.DataType, values: Sequence[Any]) -> bool:
    """Returns whether dates or times are among values of other types, which Arrow would change.

    `type_` is the type that Arrow has inferred: of `[date, 1]` it is a date, of 1970-01-02.
    """
    if not (pa.types.is_temporal(type_) or pa.types.is_nested(type_)):
        return False
    present = [value for value in values if value is not None]
    if pa.types.is_temporal(type_):
        return len(set(map(type, present))) > 1
    if pa.types.is_list(type_):
        return _mixes_times(type_.value_type, [part for value in present for part in value])
    if pa.types.is_struct(type_):
        columns = ((field, [row.get(field.name) for row in present]) for field in type_)
        return any(_mixes_times(field.type, parts) for field, parts in columns)
    return False


def _has_map(type_: pa.DataType) -> bool:
    return pa.types.is_map(type_) or any(
        _has_map(type_.field(index).type) for index in range(type_.num_fields)
    )


def _nested_array(values: Sequence[Any], type_: pa.DataType, leaf: Leaf) -> pa.Array:
    """Converts the parts of lists, structs and maps, whose types Arrow does not infer."""
    _check_shapes(values, type_)
    mask = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_struct(type_):
        rows = [{} if value is None else dict(value) for value in values]
        children = [
            array_of([row.get(field.name) for row in rows], field.type, leaf) for field in type_
        ]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    lists = [_entries(value) for value in values]
    parts = [part for each in lists for part in each]
    offsets = pa.array(accumulate(map(len, lists), initial=0), pa.int32())
    if pa.types.is_list(type_):
        return pa.ListArray.from_arrays(
            offsets, array_of(parts, type_.value_type, leaf), type=type_, mask=mask
        )
    keys = array_of([key for key, _ in parts], type_.key_type, leaf)
    items = array_of([item for _, item in parts], type_.item_type, leaf)
    return pa.MapArray.from_arrays(offsets, keys, items, type=type_, mask=mask)


def _check_shapes(values: Sequence[Any], type_: pa.DataType) -> None:
    """Raises TypeError for text and other values that have no parts of a nested type."""
    for value in values:
        is_map = isinstance(value, Mapping)
        if pa.types.is_struct(type_) or pa.types.is_map(type_):
            fits = is_map or isinstance(value, Sequence)
        else:
            fits = isinstance(value, Iterable) and not is_map
        if value is not None and (not fits or isinstance(value, str | bytes)):
            raise TypeError(f"expected {type_}, found {type(value).__name__}")


def _entries(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value.items() if isinstance(value, Mapping) else value)
