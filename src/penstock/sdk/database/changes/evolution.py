"""Columns of a stream of changes, after changes of the schema of its table.

The columns only grow: a column is added, or its type is widened. So rows from before a change can
be read with the columns after it, and a column that the table has lost is null.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.core.errors import Permanent
from penstock.sdk.columns.json_mark import column_type, is_json
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.schema_changes import promote


def evolve(
    columns: pa.Schema, found: pa.Schema, *, table: str, at: str, reserved: Sequence[str] = ()
) -> pa.Schema:
    """Returns the columns of a stream that have the values of rows with the columns `found`.

    `at` is the position of these rows in the log, and `reserved` has the names of other columns of
    the stream. Raises Permanent for a column that cannot be added, or whose type is not widened.
    """
    fields = {field.name: field for field in columns}
    names = {fold(name): name for name in (*reserved, *columns.names)}
    for field in found:
        known = fields.get(field.name)
        if known is None:
            other = names.setdefault(fold(field.name), field.name)
            if other in reserved or other in columns.names:
                raise _duplicate(field.name, other, table, at)
            fields[field.name] = field.with_nullable(True)
            continue
        type_ = widened(known.type, field.type) if is_json(known) == is_json(field) else None
        if type_ is None:
            raise _incompatible(known, field, table, at)
        fields[field.name] = known.with_type(type_)
    return pa.schema(list(fields.values()), columns.metadata)


def widened(known: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    """Returns the type for the values of both types, whose texts are the same; None without one."""
    if known == found:
        return known
    if is_list(known) and is_list(found):
        inner = widened(known.value_type, found.value_type)
        return None if inner is None else pa.list_(inner)
    are_exact = all(pa.types.is_integer(t) or pa.types.is_decimal(t) for t in (known, found))
    are_binary = all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in (known, found))
    promoted = promote(known, found) if are_exact or are_binary else None
    return None if promoted is None or pa.types.is_decimal256(promoted) else promoted


def _incompatible(known: pa.Field, found: pa.Field, table: str, at: str) -> Permanent:
    types = [column_type(each) for each in (known, found)]
    return Permanent(
        f'column "{known.name}" of the table "{table}" was {types[0]} and is {types[1]} at {at}',
        code="incompatible-schema",
        hint=f'Declare the columns of the source in schema, with a type of "{known.name}" that has '
        "the values before and after, such as STRING; or reset the state with --fresh to read the "
        "table again.",
    )


def _duplicate(name: str, other: str, table: str, at: str) -> Permanent:
    return Permanent(
        f'the new column "{name}" of the table "{table}" at {at} has the name of the column '
        f'"{other}" of the stream',
        code="incompatible-schema",
        hint="Rename the column in the table, or declare the columns of the source in schema.",
    )
