"""Kinds of types, and their names in Spark SQL."""

from __future__ import annotations

import pyarrow as pa

_NAMES = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT",
    pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING",
    pa.binary(): "BINARY", pa.date32(): "DATE", pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.null(): "VOID",
}  # fmt: skip


def sql_name(type_: pa.DataType) -> str:
    """Returns the name of a type in Spark SQL."""
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if is_list(type_):
        return f"ARRAY<{sql_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{sql_name(type_.key_type)}, {sql_name(type_.item_type)}>"
    if is_variant(type_):
        return "VARIANT"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_name(field.type)}' for field in type_)}>"
    return _NAMES.get(type_, str(type_).upper())


def is_variant(type_: pa.DataType) -> bool:
    """Returns whether a type is that of Spark for VARIANT: a struct with a marked field."""
    return pa.types.is_struct(type_) and any(
        (field.metadata or {}).get(b"variant") == b"true" for field in type_
    )


def with_article(name: str) -> str:
    """Returns a name with its indefinite article: `an INT`, `a DOUBLE`."""
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def is_list(type_: pa.DataType) -> bool:
    """Returns whether the type is a list with 32-bit or 64-bit offsets."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))
