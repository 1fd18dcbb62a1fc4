"""The type map of DuckDB, whose nested types are those of Arrow.

Source: https://duckdb.org/docs/stable/sql/data_types/overview
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.core.names import quote_standard_name, standard_literal
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database import Dialect, TypeMap
from penstock.sdk.database.types import declared_type, with_declared

_LEAVES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "utinyint": pa.int16(),
    "usmallint": pa.int32(),
    "uinteger": pa.int64(),
    "ubigint": pa.decimal128(20, 0),
    "hugeint": pa.decimal128(38, 0),
    "uhugeint": pa.decimal128(38, 0),
    "float": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("us"),
    "timestamp_ms": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
}
"""The type of rows for each type that is not nested. All others are STRING."""
_READ_AS_TEXT = {"hugeint", "uhugeint"}
"""Types whose values Arrow does not have, beside those that are STRING."""
_INTEGERS = {"UBIGINT": 64, "HUGEINT": 127, "UHUGEINT": 128}
WHOLE_NUMBERS = ("HUGEINT", "UHUGEINT", "BIGNUM")


class DuckdbTypes(TypeMap):
    """The type map, with nested types in the place of their elements."""

    def column_type(self, field: pa.Field) -> str:
        type_ = field.type

        def inner(part: pa.Field) -> str:
            return self.column_type(part.with_name(field.name))

        if is_json(field) or not pa.types.is_nested(type_):
            return super().column_type(field)
        if is_list(type_):
            return f"{inner(type_.value_field)}[]"
        if pa.types.is_map(type_):
            return f"MAP({inner(type_.key_field)}, {inner(type_.item_field)})"
        if pa.types.is_struct(type_) and type_.num_fields:
            parts = ", ".join(f"{quote_standard_name(part.name)} {inner(part)}" for part in type_)
            return f"STRUCT({parts})"
        return super().column_type(field)

    def accepts(self, written: pa.Field, target: pa.Field) -> bool:
        declared = declared_type(target)
        if declared in WHOLE_NUMBERS and pa.types.is_string(written.type):
            return True
        if declared in _INTEGERS and pa.types.is_integer(written.type):
            return True
        if declared in WHOLE_NUMBERS and pa.types.is_decimal(written.type):
            return bool(written.type.scale == 0)
        return written.type == target.type or super().accepts(written, target)


TYPES: TypeMap = DuckdbTypes(
    system="DuckDB",
    declared={
        "boolean": "BOOLEAN",
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "decimal": "DECIMAL({precision},{scale})",
        "string": "VARCHAR",
        "binary": "BLOB",
        "date": "DATE",
        "timestamp": "TIMESTAMPTZ",
        "timestamp_ntz": "TIMESTAMP",
        "json": "JSON",
    },
    read=(),
)
DIALECT = Dialect(TYPES)


def field_of(name: str, type_: Any, *, nullable: bool) -> pa.Field:
    """Returns the field of a column of one of DuckDB's types, with its declared type."""
    field = pa.field(name, arrow_type(type_), nullable)
    return with_declared(json_field(field) if str(type_) == "JSON" else field, str(type_))


@cache
def type_of(declared: str) -> Any:
    """Returns DuckDB's type of a declared type."""
    import duckdb

    return duckdb.sqltype(declared)


def arrow_type(type_: Any) -> pa.DataType:
    """Returns the type of rows for one of DuckDB's types. A UNION is a struct of its members."""
    match type_.id:
        case "decimal":
            (_, precision), (_, scale) = type_.children
            return pa.decimal128(precision, scale)
        case "list" | "array":
            return pa.list_(arrow_type(type_.children[0][1]))
        case "map":
            (_, key), (_, value) = type_.children
            return pa.map_(arrow_type(key), arrow_type(value))
        case "struct" | "union":
            return pa.struct([(name, arrow_type(part)) for name, part in members(type_)])
        case leaf:
            return _LEAVES.get(leaf, pa.string())


def text_type(type_: Any) -> str | None:
    """Returns a type in which text replaces values that Arrow does not have; None without them."""
    parts = _parts(type_)
    if not parts:
        is_text = type_.id in _READ_AS_TEXT or (type_.id not in _LEAVES and type_.id != "decimal")
        return "VARCHAR" if is_text else None
    texts = [text_type(part) for _, part in parts]
    if not any(texts):
        return None
    names = [text or str(part) for text, (_, part) in zip(texts, parts, strict=True)]
    match type_.id:
        case "list":
            return f"{names[0]}[]"
        case "array":
            return f"{names[0]}[{type_.children[1][1]}]"
        case "map":
            return f"MAP({', '.join(names)})"
    members = zip(parts, names, strict=True)
    fields = [f"{quote_standard_name(name)} {text}" for (name, _), text in members]
    return f"{type_.id}({', '.join(fields)})"


def union_item(written: pa.Field, target: pa.Field) -> str | None:
    """Returns the value of a struct as a UNION in SQL; None for a column of another type."""
    declared = declared_type(target)
    if not declared.startswith("UNION(") or not pa.types.is_struct(written.type):
        return None
    cases = []
    for member in written.type:
        value = (
            f"struct_extract({quote_standard_name(written.name)}, {standard_literal(member.name)})"
        )
        union = f"CAST(union_value({quote_standard_name(member.name)} := {value}) AS {declared})"
        cases.append(f"WHEN {value} IS NOT NULL THEN {union}")
    return f"CASE {' '.join(cases)} END"


def _parts(type_: Any) -> Sequence[tuple[str, Any]]:
    match type_.id:
        case "list" | "array":
            return [*type_.children[:1]]
        case "map":
            return [*type_.children]
        case "struct" | "union":
            return members(type_)
    return []


def members(type_: Any) -> Sequence[tuple[str, Any]]:
    """Returns the fields of a STRUCT, or the members of a UNION without its tag."""
    return [*type_.children[1:]] if type_.id == "union" else [*type_.children]
