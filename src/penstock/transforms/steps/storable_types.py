"""Types of columns that Spark has, for those of Arrow that it does not have."""

from __future__ import annotations

import pyarrow as pa

_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.null(): pa.string(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}


def storable(type_: pa.DataType) -> pa.DataType:
    """Returns the type of Spark's that holds the values of a type."""
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_time(type_) or pa.types.is_duration(type_) or pa.types.is_interval(type_):
        return pa.string()
    if pa.types.is_map(type_):
        return pa.map_(storable(type_.key_type), storable(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(storable(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(each.name, storable(each.type)) for each in type_])
    return type_
