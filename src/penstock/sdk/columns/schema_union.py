"""Union of the columns of several files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa

from penstock.sdk.columns.inference import INEXACT_AS_DOUBLE
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.type_names import is_list


def union_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Returns the columns of all schemas, with types that hold the values of each.

    Names that differ only by case are one column, with the first spelling. Raises ArrowException
    for a column of types without a common one.
    """
    fields = reduce(_union_fields, map(list, schemas))
    return pa.schema([_without_mark(field) for field in fields])


def _without_mark(field: pa.Field) -> pa.Field:
    if pa.types.is_struct(field.type):
        field = field.with_type(pa.struct([_without_mark(inner) for inner in field.type]))
    elif is_list(field.type):
        field = field.with_type(pa.list_(_without_mark(field.type.value_field)))
    return field.remove_metadata() if field.metadata == INEXACT_AS_DOUBLE else field


def _union_fields(left: Iterable[pa.Field], right: Iterable[pa.Field]) -> list[pa.Field]:
    fields = {fold(field.name): field for field in left}
    for field in right:
        known = fields.get(fold(field.name))
        fields[fold(field.name)] = field if known is None else _union(known, field)
    return list(fields.values())


def _union(left: pa.Field, right: pa.Field) -> pa.Field:
    nullable = left.nullable or right.nullable
    left, right = left.with_nullable(nullable), right.with_nullable(nullable)
    if pa.types.is_struct(left.type) and pa.types.is_struct(right.type):
        return left.with_type(pa.struct(_union_fields(left.type, right.type)))
    if is_list(left.type) and is_list(right.type):
        item = _union(left.type.value_field, right.type.value_field)
        return left.with_type(pa.list_(item))
    for field, other in ((left, right), (right, left)):
        if pa.types.is_float64(field.type) and (other.metadata or {}) == INEXACT_AS_DOUBLE:
            return left.with_type(pa.string())
    (field,) = pa.unify_schemas(
        [pa.schema([left]), pa.schema([right.with_name(left.name)])], promote_options="permissive"
    )
    inexact = [each for each in (left, right) if (each.metadata or {}) == INEXACT_AS_DOUBLE]
    return field.with_metadata(inexact[0].metadata if inexact else left.metadata)
