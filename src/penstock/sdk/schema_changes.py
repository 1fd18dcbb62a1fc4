"""Schema comparison: the changes of a target that rows require."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from penstock.sdk.columns.names import find_name
from penstock.sdk.columns.type_names import sql_name

_MANTISSA_BITS = {16: 11, 32: 24, 64: 53}


@dataclass(frozen=True)
class ColumnChange:
    """One column of a target and its type in the rows. `target` is None if it is missing."""

    name: str
    rows: pa.DataType | None
    target: pa.DataType | None
    promoted: pa.DataType | None = None
    """The type that holds the values of both types, or None."""

    def __str__(self) -> str:
        if self.rows is None:
            return f'"{self.name}" is required by the target and missing in the rows'
        if self.target is None:
            return f'"{self.name}" {sql_name(self.rows)} is missing in the target'
        text = f'"{self.name}" is {sql_name(self.rows)} in the rows'
        return f"{text} and {sql_name(self.target)} in the target"


@dataclass(frozen=True)
class SchemaChanges:
    """The differences between the schema of rows and the schema of a target."""

    missing: tuple[ColumnChange, ...] = ()
    """Columns of the rows to add to the target."""
    widened: tuple[ColumnChange, ...] = ()
    """Columns of the target to widen to `promoted`."""
    incompatible: tuple[ColumnChange, ...] = ()
    """Columns that can neither be added nor widened."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.widened or self.incompatible)

    def __str__(self) -> str:
        return "; ".join(map(str, (*self.incompatible, *self.missing, *self.widened)))


def compare_schemas(rows: pa.Schema, target: pa.Schema) -> SchemaChanges:
    """Returns the changes of `target` that rows of the schema `rows` require.

    A column whose type can be promoted to the target's type without loss requires no change. A
    nullable column of the target may be missing in the rows.
    """
    missing, widened, incompatible = [], [], []
    for field in rows:
        index = target.get_field_index(field.name)
        if index < 0:
            missing.append(ColumnChange(field.name, field.type, None, field.type))
            continue
        target_type = target.field(index).type
        promoted = promote(field.type, target_type)
        change = ColumnChange(field.name, field.type, target_type, promoted)
        if promoted is None:
            incompatible.append(change)
        elif promoted != target_type:
            widened.append(change)
    incompatible += [
        ColumnChange(field.name, None, field.type)
        for field in target
        if not field.nullable and field.name not in rows.names
    ]
    return SchemaChanges(tuple(missing), tuple(widened), tuple(incompatible))


def as_written(
    target: pa.Schema, columns: pa.Schema, accepts: Callable[[pa.Field, pa.Field], bool]
) -> pa.Schema:
    """Returns the columns of a target with the names of rows.

    A column has the type of the rows if `accepts(written, target)`: it stores their values as they
    are.
    """
    fields = list(target)
    for written in columns:
        index = find_name(written.name, target.names)
        if index >= 0:
            type_ = written.type if accepts(written, fields[index]) else fields[index].type
            fields[index] = fields[index].with_name(written.name).with_type(type_)
    return pa.schema(fields)


def promote(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Returns the type that holds the values of both types without loss, or None."""
    if first == second:
        return first
    fields = [pa.schema([("column", type_)]) for type_ in (first, second)]
    try:
        promoted = pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if pa.types.is_floating(promoted):
        exact = _MANTISSA_BITS[promoted.bit_width]
        integers = [type_ for type_ in (first, second) if pa.types.is_integer(type_)]
        if any(type_.bit_width > exact for type_ in integers):
            return None
    return promoted
