"""Columns of an aggregate table, and the expressions of their values in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.connectors.postgres.aggregate.config import (
    Aggregate,
    PostgresAggregateSinkConfig,
)
from penstock.connectors.postgres.types import DIALECT
from penstock.core.errors import OptionError, PlanError, raise_all
from penstock.sdk.columns.checks import check_column
from penstock.sdk.columns.names import find_name
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.database.types import declared_type, kind_of

INTEGERS = frozenset({"int8", "int16", "int32", "int64"})
FLOATS = frozenset({"float", "double"})
NUMBERS = INTEGERS | FLOATS | {"decimal"}
_ORDERED = NUMBERS | {"string", "date", "timestamp", "timestamp_ntz"}
_CONVERSIONS = {
    ("date", "timestamp_ntz"): "{0}::timestamp",
    ("date", "timestamp"): "({0}::timestamp AT TIME ZONE 'UTC')",
    ("timestamp_ntz", "date"): "{0}::date",
    ("timestamp_ntz", "timestamp"): "({0} AT TIME ZONE 'UTC')",
    ("timestamp", "date"): "({0} AT TIME ZONE 'UTC')::date",
    ("timestamp", "timestamp_ntz"): "({0} AT TIME ZONE 'UTC')",
    **{(kind, "string"): "{0}::text" for kind in (*INTEGERS, "decimal", "boolean")},
}
"""Conversions that depend on no setting of a session: an index can have them."""


@dataclass(frozen=True)
class Value:
    """The value of a column of the landing table, as the aggregate table stores it.

    `kind` is the kind of the column, `type` the type of the converted value.
    """

    column: str
    kind: str | None
    type: str
    conversion: str = "{0}"

    def of(self, row: str) -> str:
        """Returns the expression of the value in a row."""
        return self.conversion.format(f"{row}.{DIALECT.quote(self.column)}")


@dataclass(frozen=True)
class GroupValue:
    """A column of the groups, called `name` in the aggregate table."""

    name: str
    value: Value


@dataclass(frozen=True)
class AggregateValue:
    """A column of an aggregate. `value` is None for the number of rows."""

    name: str
    function: str
    type: str
    value: Value | None


@dataclass(frozen=True)
class Columns:
    """The columns of an aggregate table."""

    groups: tuple[GroupValue, ...]
    aggregates: tuple[AggregateValue, ...]

    @classmethod
    def of(cls, config: PostgresAggregateSinkConfig, landing: pa.Schema) -> Columns:
        """Returns the columns for the rows of a landing table. Raises all errors of options."""
        groups, aggregates, errors = [], [], []
        for index, (name, group) in enumerate(config.groups.items()):
            option = ("group_by", index if isinstance(config.group_by, list) else name)
            is_map = isinstance(config.group_by, dict) and config.group_by[name] is group
            try:
                value = _value(group.column, landing, *option, *(["column"] if is_map else []))
                value = _converted(value, group.field(name), landing, *option)
                groups.append(GroupValue(name, value))
            except PlanError as error:
                errors.append(error)
        for name, aggregate in config.aggregates.items():
            try:
                aggregates.append(_aggregate(name, aggregate, landing))
            except PlanError as error:
                errors.append(error)
        raise_all(errors)
        return cls(tuple(groups), tuple(aggregates))

    def types(self) -> Iterator[tuple[str, str]]:
        """Yields the name and the type of each column."""
        yield from ((group.name, group.value.type) for group in self.groups)
        yield from ((aggregate.name, aggregate.type) for aggregate in self.aggregates)


def _aggregate(name: str, aggregate: Aggregate, landing: pa.Schema) -> AggregateValue:
    path = ("aggregates", name)
    function, field = aggregate.function, aggregate.field(name)
    if aggregate.column is None:
        return AggregateValue(name, function, _numeric_type(field, "BIGINT", *path), None)
    value = _value(aggregate.column, landing, *path, "column")
    expected = {"sum": NUMBERS, "avg": NUMBERS, "min": _ORDERED, "max": _ORDERED}.get(function)
    if expected is not None and value.kind not in expected:
        words = "numbers" if expected is NUMBERS else "numbers, texts or times"
        type_ = sql_name(landing.field(value.column).type)
        raise OptionError.of(
            *path, "column",
            message=f'{function} requires {words}: column "{value.column}" has the type {type_}',
            code="wrong-type", hint="Convert the column in a transform, or use another function.",
        )  # fmt: skip
    if function in ("min", "max"):
        value = _converted(value, field, landing, *path)
        return AggregateValue(name, function, value.type, value)
    result = "DOUBLE PRECISION" if value.kind in FLOATS else "NUMERIC"
    default = "BIGINT" if function == "count" else result
    return AggregateValue(name, function, _numeric_type(field, default, *path), value)


def _value(name: str, landing: pa.Schema, *option: str | int) -> Value:
    index = find_name(name, landing.names)
    if index < 0:
        raise_all(check_column(name, landing, *option))
    field = landing.field(index)
    declared = declared_type(field)
    if re.fullmatch(r"numeric(\(.*\))?", declared):
        return Value(field.name, "decimal", declared)
    return Value(field.name, kind_of(field), declared or DIALECT.types.column_type(field))


def _converted(
    value: Value, field: pa.Field | None, landing: pa.Schema, *option: str | int
) -> Value:
    if field is None:
        return value
    to, type_ = kind_of(field), DIALECT.types.column_type(field)
    if to == value.kind and to != "decimal":
        return value
    if value.kind in NUMBERS and to in NUMBERS:
        return replace(value, type=type_, conversion=f"{{0}}::{type_}")
    conversion = _CONVERSIONS.get((str(value.kind), str(to)))
    if conversion is None:
        found = sql_name(landing.field(value.column).type)
        raise OptionError.of(
            *option, "type",
            message=f'column "{value.column}" has the type {found}, which is not converted to '
            f"{sql_name(field.type)}",
            code="wrong-type", hint="Convert the column in a transform.",
        )  # fmt: skip
    return replace(value, type=type_, conversion=conversion)


def _numeric_type(field: pa.Field | None, default: str, *option: str | int) -> str:
    if field is None:
        return default
    if kind_of(field) not in NUMBERS:
        raise OptionError.of(
            *option, "type",
            message=f"expected a type of numbers, found {sql_name(field.type)}",
            code="wrong-type",
        )  # fmt: skip
    return DIALECT.types.column_type(field)
