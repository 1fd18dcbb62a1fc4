"""Names of columns: upper and lower case are equal unless two names differ only by case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.core.errors import PlanError


class AmbiguousName(pa.ArrowInvalid):  # type: ignore[misc]
    """Several names for a column: equal ones, or those that differ only by case."""

    def __init__(self, column: str, names: Sequence[str]) -> None:
        listed = ", ".join(f'"{name}"' for name in names)
        super().__init__(f'expected one column "{column}", found {listed}')
        self.column = column
        self.names = names


def fold(name: str) -> str:
    """Returns a name in lower case, as Spark compares names."""
    return name.lower()


def find_name(column: str, names: Sequence[str]) -> int:
    """Returns the index of a column among names, or -1.

    An equal name comes first, then the only name that differs by case. Raises AmbiguousName for
    several.
    """
    count = names.count(column)
    if count == 1:
        return names.index(column)
    folded = fold(column)
    alike = [index for index, name in enumerate(names) if name == column or fold(name) == folded]
    if count:
        alike = [index for index in alike if names[index] == column]
    if len(alike) > 1:
        raise AmbiguousName(column, [names[index] for index in alike])
    return alike[0] if alike else -1


def match_fields(
    fields: Iterable[pa.Field], columns: Iterable[pa.Field]
) -> list[tuple[str, pa.Field]]:
    """Returns the columns that are among `fields`, with their names there.

    Raises AmbiguousName, also for fields within structs.
    """
    present = list(fields)
    names = [field.name for field in present]
    matches = []
    for column in columns:
        index = find_name(column.name, names)
        if index >= 0:
            _match_within(present[index].type, column.type)
            matches.append((names[index], column))
    return matches


def _match_within(type_: pa.DataType, column_type: pa.DataType) -> None:
    if pa.types.is_struct(type_) and pa.types.is_struct(column_type):
        match_fields(type_, column_type)
    elif pa.types.is_nested(type_) and type_.num_fields == column_type.num_fields:
        for index in range(type_.num_fields):
            _match_within(type_.field(index).type, column_type.field(index).type)


def check_distinct(schema: Iterable[pa.Field]) -> None:
    """Raises PlanError for names that are equal or differ only by case, also in nested fields."""
    seen: dict[str, str] = {}
    for field in schema:
        name = field.name
        if fold(name) in seen:
            raise ambiguous_names(seen[fold(name)], name)
        seen[fold(name)] = name
        _check_within(field.type)


def _check_within(type_: pa.DataType) -> None:
    if pa.types.is_struct(type_):
        check_distinct(type_)
    elif pa.types.is_nested(type_):
        for index in range(type_.num_fields):
            _check_within(type_.field(index).type)


def ambiguous_names(first: str, second: str) -> PlanError:
    """Returns the error of two columns whose names are equal or differ only by case."""
    problem = "occurs twice" if first == second else f'differs from "{first}" only by case'
    return PlanError(
        f'column "{second}" {problem}',
        code="ambiguous-column",
        hint="Declare the columns in schema, each of them once.",
    )
