"""The type map and the SQL of ClickHouse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.connectors.clickhouse.declared import Declared, parse
from penstock.connectors.clickhouse.literals import PARAMETER
from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database import Dialect, TableName, TypeMap
from penstock.sdk.database.types import declared_type, with_declared

MAX_PRECISION = 38
UTC = pa.timestamp("us", tz="UTC")
_LEAVES: dict[str, pa.DataType] = {
    "Bool": pa.bool_(),
    "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(),
    "UInt8": pa.int16(), "UInt16": pa.int32(), "UInt32": pa.int64(),
    "UInt64": pa.decimal128(20, 0),
    "Float32": pa.float32(), "BFloat16": pa.float32(), "Float64": pa.float64(),
    "String": pa.string(), "FixedString": pa.binary(),
    "Date": pa.date32(), "Date32": pa.date32(), "DateTime": UTC, "DateTime64": UTC,
    "JSON": pa.string(),
}  # fmt: skip
TEXTS = frozenset(
    {"UUID", "IPv4", "IPv6", "Enum8", "Enum16", "Int128", "Int256", "UInt128", "UInt256", "Time",
     "Time64"}
)  # fmt: skip
"""Types that are read and written as text."""
INTEGERS = {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64, 128, 256)}
_READ_AS = {"Date": "Date32", "BFloat16": "Float32", "JSON": "String"}
_TIMES = {"DateTime", "DateTime64"}


class ClickhouseTypes(TypeMap):
    """The types of ClickHouse, also nested ones. A field has nulls if its type is Nullable."""

    def column_type(self, field: pa.Field) -> str:
        """Returns the type of a new column. Lists, maps and structs of ClickHouse have no nulls."""
        type_ = field.type
        if is_list(type_):
            return f"Array({self.column_type(type_.value_field.with_name(field.name))})"
        if pa.types.is_map(type_):
            key = super().column_type(type_.key_field.with_name(field.name))
            return f"Map({key}, {self.column_type(type_.item_field.with_name(field.name))})"
        if pa.types.is_struct(type_) and type_.num_fields:
            parts = (f"{quoted(part.name)} {self.column_type(part)}" for part in type_)
            return f"Tuple({', '.join(parts)})"
        return f"Nullable({super().column_type(field)})"

    def field(self, name: str, declared: str, *, nullable: bool = True) -> pa.Field | None:
        try:
            parsed = parse(declared)
        except (ValueError, IndexError):
            return None
        type_ = arrow_type(parsed)
        if type_ is None:
            return None
        found = pa.field(name, type_, nullable)
        return json_field(found) if parsed.name == "JSON" else found

    def accepts(self, written: pa.Field, target: pa.Field) -> bool:
        return stores(written, parse(declared_type(target)))


TYPES = ClickhouseTypes(
    "ClickHouse",
    declared={
        "boolean": "Bool", "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64",
        "float": "Float32", "double": "Float64", "decimal": "Decimal({precision}, {scale})",
        "string": "String", "binary": "String", "date": "Date32",
        "timestamp": "DateTime64(6, 'UTC')", "timestamp_ntz": "DateTime64(6, 'UTC')",
        "json": "String",
    },
    read=(),
)  # fmt: skip


def quoted(name: str) -> str:
    """Returns a quoted name. ClickHouse reads backslashes in it."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class ClickhouseDialect(Dialect):
    """The SQL of ClickHouse. The other fields are those of a new table."""

    engine: str | None = None
    order_columns: Sequence[str] = ()
    column_types: dict[str, str] = field(default_factory=dict)
    version_column: str = ""
    deleted_column: str = ""
    removes: bool = False
    """Whether deletes remove rows, so that a table has no column of deleted rows."""

    def quote(self, name: str) -> str:
        self.check_name(name)
        return quoted(name)

    def column(self, field: pa.Field) -> str:
        if field.name in self.column_types:
            return f"{self.quote(field.name)} {self.column_types[field.name]}"
        return super().column(field)

    def key_column(self, field: pa.Field) -> str:
        """Returns the definition of a column of ORDER BY, which is not Nullable."""
        definition = self.column(field)
        start = f"{self.quote(field.name)} Nullable("
        if definition.startswith(start):
            return f"{self.quote(field.name)} {definition.removeprefix(start).removesuffix(')')}"
        return definition

    def create_table(self, table: TableName, columns: pa.Schema, key: Sequence[str] = ()) -> str:
        order = key or self.order_columns
        definitions = [
            self.key_column(each) if each.name in order else self.column(each) for each in columns
        ]
        engine, settings = self.engine or "MergeTree", ""
        if key and self.removes:
            engine = self.engine or "ReplacingMergeTree()"
        elif key:
            version, deleted = self.quote(self.version_column), self.quote(self.deleted_column)
            definitions += [f"{version} UInt64", f"{deleted} UInt8"]
            engine = self.engine or f"ReplacingMergeTree({version}, {deleted})"
        elif self.engine is None:
            settings = " SETTINGS non_replicated_deduplication_window = 1000"
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table(table)} ({', '.join(definitions)}) "
            f"ENGINE = {engine} ORDER BY ({self.quote_all(order)}){settings}"
        )


DIALECT = ClickhouseDialect(TYPES, parameter=PARAMETER, indexes_rows=False)


def field_of(name: str, declared: str, *, has_default: bool = False) -> pa.Field:
    """Returns the field of a column, with its declared type. It is nullable if it may be missing.

    Raises PlanError for an unsupported type.
    """
    found = TYPES.field(name, declared)
    if found is None:
        raise PlanError(
            f'column "{name}": the type {declared} is not supported',
            code="unsupported-type",
            hint=f"Read a query without the column, or with toString({name}).",
        )
    nullable = has_default or parse(declared).nullable
    return with_declared(found.with_nullable(nullable), declared)


def arrow_type(type_: Declared) -> pa.DataType | None:
    """Returns the type of rows for a type; None for an unsupported one."""
    if type_.name in _LEAVES:
        return _LEAVES[type_.name]
    if type_.name in TEXTS:
        return pa.string()
    if type_.name == "Decimal":
        precision, scale = map(int, type_.arguments)
        return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.string()
    parts = [(name, arrow_type(part), part.nullable) for name, part in type_.parts]
    if not parts or any(part is None for _, part, _ in parts):
        return None
    match type_.name:
        case "Array":
            return pa.list_(parts[0][1])
        case "Map":
            return pa.map_(parts[0][1], parts[1][1])
        case "Tuple":
            return pa.struct([(name, part) for name, part, _ in parts])
        case "Nested":
            return pa.list_(pa.struct([(name, part) for name, part, _ in parts]))
    return None


def read_type(type_: Declared) -> str | None:
    """Returns the type as which values are read in Arrow; None if it is the type itself."""
    if type_.parts:
        names = [(name, read_type(part) or _text(part)) for name, part in type_.parts]
        if all(read_type(part) is None for _, part in type_.parts):
            return None
        match type_.name:
            case "Array":
                return f"Array({names[0][1]})"
            case "Map":
                return f"Map({names[0][1]}, {names[1][1]})"
        tuple_ = f"Tuple({', '.join(f'{quoted(name)} {text}' for name, text in names)})"
        tuple_ = f"Nullable({tuple_})" if type_.nullable else tuple_
        return tuple_ if type_.name == "Tuple" else f"Array({tuple_})"
    if type_.name == "DateTime":
        text: str | None = "DateTime64(0, 'UTC')"
    elif type_.name in TEXTS or (type_.name == "Decimal" and int(type_.arguments[0]) > 38):
        text = "String"
    else:
        text = _READ_AS.get(type_.name)
    return f"Nullable({text})" if text is not None and type_.nullable else text


def _text(type_: Declared) -> str:
    arguments = f"({', '.join(type_.arguments)})" if type_.arguments else ""
    text = f"{type_.name}{arguments}"
    return f"Nullable({text})" if type_.nullable else text


def stores(written: pa.Field, type_: Declared) -> bool:
    """Returns whether a type stores the values of a column of rows as they are, if in its range."""
    source: Any = written.type
    if is_list(source):
        if type_.name == "Nested":
            type_ = Declared("Array", (_text(Declared("Tuple", type_.arguments)),))
        return type_.name == "Array" and stores(source.value_field, type_.parts[0][1])
    if pa.types.is_map(source):
        fields = (source.key_field, source.item_field)
        return type_.name == "Map" and all(
            stores(each, part) for each, (_, part) in zip(fields, type_.parts, strict=True)
        )
    if pa.types.is_struct(source):
        return (
            type_.name == "Tuple"
            and source.names == [name for name, _ in type_.parts]
            and all(stores(each, part) for each, (_, part) in zip(source, type_.parts, strict=True))
        )
    return _stores_leaf(written, type_)


def _stores_leaf(written: pa.Field, type_: Declared) -> bool:
    source, name = written.type, type_.name
    is_whole = pa.types.is_integer(source) or (pa.types.is_decimal(source) and not source.scale)
    if is_json(written):
        return name in ("String", "JSON")
    if is_whole and name in INTEGERS:
        return True
    if pa.types.is_integer(source) or pa.types.is_decimal(source):
        scale = getattr(source, "scale", 0)
        return name == "Decimal" and int(type_.arguments[1]) >= scale
    if pa.types.is_string(source):
        return name in TEXTS or name in ("String", "FixedString", "JSON") or (
            name == "Decimal" and int(type_.arguments[0]) > MAX_PRECISION
        )  # fmt: skip
    if pa.types.is_binary(source):
        return name in ("String", "FixedString")
    if pa.types.is_date(source):
        return name in ("Date", "Date32")
    if pa.types.is_timestamp(source):
        return name in _TIMES
    if pa.types.is_boolean(source):
        return name == "Bool"
    if pa.types.is_float32(source):
        return name in ("Float32", "Float64")
    return bool(pa.types.is_float64(source) and name == "Float64")
