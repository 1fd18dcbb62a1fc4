"""Types of Arrow and Parquet files that Spark does not have, as types of Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.conform import Leaf, rebuild
from penstock.sdk.columns.plain_arrays import from_list_view, is_list_view, storage_values
from penstock.sdk.columns.type_names import is_list

_MAX_PRECISION = 38


def storage_type(type_: pa.DataType) -> pa.DataType:
    """Returns the type of Spark for the values of an Arrow type.

    A type without a counterpart is returned as it is.
    """
    if pa.types.is_struct(type_):
        return pa.struct(
            [pa.field(field.name, storage_type(field.type), field.nullable) for field in type_]
        )
    if is_list(type_) or pa.types.is_fixed_size_list(type_) or is_list_view(type_):
        nullable = type_.value_field.nullable
        return pa.list_(pa.field("element", storage_type(type_.value_type), nullable))
    if pa.types.is_map(type_):
        item = pa.field("value", storage_type(type_.item_type), type_.item_field.nullable)
        return pa.map_(storage_type(type_.key_type), item)
    if isinstance(type_, pa.BaseExtensionType):
        return _extended_type(type_)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return storage_type(type_.value_type)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    return _decimal(type_) if pa.types.is_decimal(type_) else _simple(type_)


def _extended_type(type_: pa.BaseExtensionType) -> pa.DataType:
    if isinstance(type_, pa.UuidType):
        return pa.string()
    return pa.bool_() if isinstance(type_, pa.Bool8Type) else storage_type(type_.storage_type)


def _decimal(type_: pa.DataType) -> pa.DataType:
    precision = type_.precision - min(type_.scale, 0)
    if precision > _MAX_PRECISION:
        return type_
    return pa.decimal128(precision, max(type_.scale, 0))


def _simple(type_: pa.DataType) -> pa.DataType:
    wider = {
        pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0), pa.float16(): pa.float32(), pa.date64(): pa.date32(),
        pa.large_string(): pa.string(), pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(), pa.null(): pa.string(),
    }  # fmt: skip
    return pa.binary() if pa.types.is_fixed_size_binary(type_) else wider.get(type_, type_)


def unwrapping(conversion: Leaf) -> Leaf:
    """Returns a conversion that also accepts arrays of types that Spark does not have.

    A UUID is converted to its text with hyphens, or to its 16 bytes.
    """

    def convert(array: pa.Array, type_: pa.DataType) -> pa.Array:
        plain = _plain(array, type_)
        return conversion(array, type_) if plain is array else rebuild(plain, type_, convert)

    return convert


def _plain(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns an array without its encoding or extension; the array itself without both."""
    source = array.type
    if isinstance(source, pa.BaseExtensionType):
        return storage_values(array, type_)
    if pa.types.is_dictionary(source):
        return _plain(array.dictionary, source.value_type).take(array.indices)
    if pa.types.is_run_end_encoded(source):
        return pc.run_end_decode(array)
    if is_list_view(source):
        return from_list_view(array)
    if pa.types.is_fixed_size_list(source):
        return array.cast(pa.list_(source.value_field))
    if source in (pa.string_view(), pa.large_string()):
        return array.cast(pa.string())
    if source == pa.binary_view():
        return array.cast(pa.binary())
    if pa.types.is_decimal(source) and source.scale < 0 and _decimal(source) != source:
        return array.cast(_decimal(source))
    return array
