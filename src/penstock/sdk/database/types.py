"""Type maps: the column types of a database for Arrow types, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.type_names import is_list, sql_name
from penstock.sdk.database.names import check_no_nul

DECLARED = b"penstock.declared"
"""The metadata key of a column for its declared type."""
Parse = Callable[[re.Match[str]], pa.DataType]

_KINDS: Sequence[tuple[str, Callable[[pa.DataType], bool]]] = (
    ("boolean", pa.types.is_boolean),
    ("int8", pa.types.is_int8),
    ("int16", pa.types.is_int16),
    ("int32", pa.types.is_int32),
    ("int64", pa.types.is_int64),
    ("float", lambda type_: pa.types.is_float32(type_) or pa.types.is_float16(type_)),
    ("double", pa.types.is_float64),
    ("decimal", pa.types.is_decimal),
    ("string", lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_)),
    ("binary", lambda type_: pa.types.is_binary(type_) or pa.types.is_large_binary(type_)),
    ("date", pa.types.is_date32),
    ("timestamp", lambda type_: pa.types.is_timestamp(type_) and type_.tz is not None),
    ("timestamp_ntz", lambda type_: pa.types.is_timestamp(type_) and type_.tz is None),
    ("nested_list", lambda type_: is_list(type_) and pa.types.is_nested(type_.value_type)),
    ("list", is_list),
    ("map", pa.types.is_map),
    ("struct", pa.types.is_struct),
)


def kind_of(field: pa.Field) -> str | None:
    """Returns the kind of a field's type, a key of `TypeMap.declared`; None for others."""
    if is_json(field):
        return "json"
    return next((kind for kind, matches in _KINDS if matches(field.type)), None)


@dataclass(frozen=True)
class TypeMap:
    """The types of a system.

    `declared` has the type for a new column of each kind; `{precision}`, `{scale}` and `{element}`
    are those of the Arrow type. `read` has the Arrow type of each declared type, by patterns that
    match the whole text in any case; the first match counts. `json` matches types of JSON text.
    """

    system: str
    declared: Mapping[str, str]
    read: Sequence[tuple[str, Parse]]
    json: str | None = None

    def column_type(self, field: pa.Field) -> str:
        """Returns the declared type of a new column. Raises PlanError for an unsupported type."""
        kind = kind_of(field)
        text = self.declared.get(kind) if kind is not None else None
        if text is None:
            raise PlanError(
                f'column "{field.name}": {self.system} has no type for {sql_name(field.type)}',
                code="unsupported-type",
                hint=f"Convert the column in a transform: CAST({field.name} AS STRING).",
            )
        return text.format(**self._facts(field, text))

    def check(self, field: pa.Field) -> None:
        """Raises PlanError for a column of an unsupported type, also within nested types."""
        check_no_nul(field.name, self.system)
        type_ = field.type
        if is_json(field) or not pa.types.is_nested(type_):
            self.column_type(field)
        elif is_list(type_):
            self.check(type_.value_field.with_name(field.name))
        elif pa.types.is_map(type_):
            self.check(type_.key_field.with_name(field.name))
            self.check(type_.item_field.with_name(field.name))
        elif type_.num_fields:
            for part in type_:
                self.check(part.with_name(f"{field.name}.{part.name}"))
        else:
            self.column_type(field)

    def accepts(self, written: pa.Field, target: pa.Field) -> bool:
        """Returns whether a column of a table stores the values of a column of rows as they are.

        The default compares the target with a new column for the rows.
        """
        stored = self.field(written.name, self.column_type(written))
        return stored is not None and stored.type == target.type

    def _facts(self, field: pa.Field, text: str) -> dict[str, Any]:
        if kind_of(field) == "decimal":
            return {"precision": field.type.precision, "scale": field.type.scale}
        if "{element}" in text:
            return {"element": self.column_type(field.type.value_field.with_name(field.name))}
        return {}

    def field(self, name: str, declared: str, *, nullable: bool = True) -> pa.Field | None:
        """Returns the field of a column of a declared type; None for an unknown type."""
        if self.json is not None and re.fullmatch(self.json, declared, re.IGNORECASE):
            return json_field(pa.field(name, pa.string(), nullable))
        for pattern, parse in self.read:
            if match := re.fullmatch(pattern, declared, re.IGNORECASE):
                return pa.field(name, parse(match), nullable)
        return None


def declared_type(field: pa.Field) -> str:
    """Returns the declared type of a column of a table."""
    return str((field.metadata or {}).get(DECLARED, b""), "utf-8")


def with_declared(field: pa.Field, declared: str) -> pa.Field:
    """Returns a field with its declared type."""
    return field.with_metadata({**(field.metadata or {}), DECLARED: declared.encode()})


def without_declared(columns: pa.Schema) -> pa.Schema:
    """Returns columns without their declared types."""
    return pa.schema(
        [
            field.with_metadata({k: v for k, v in (field.metadata or {}).items() if k != DECLARED})
            for field in columns
        ]
    )


def decimal_type(match: re.Match[str]) -> pa.DataType:
    """Returns DECIMAL of the precision and the scale in the first two groups of a match."""
    return pa.decimal128(int(match[1]), int(match[2] or 0))


def always(type_: pa.DataType) -> Parse:
    """Returns a function that returns a type for each match."""
    return lambda match: type_
