"""The tables of a script: repeated options, and types whose meaning Arroyo decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from penstock.core.errors import SpecError
from penstock.spec.script.arroyo import is_arroyo_table
from penstock.spec.script.arroyo.keys import Kind
from penstock.spec.script.options import Option, check_unique, last_options
from penstock.spec.script.statements import CreateTable, Insert, Statement
from penstock.spec.script.table import TableColumns
from penstock.spec.script.types import translate_type
from penstock.spec.tree.nodes import File

_DECIMAL = "DECIMAL(38, 10)"
"""The type of DECIMAL without a precision in Arroyo."""


@dataclass(frozen=True)
class Tables:
    """The statements of a script, in which tables have each option once."""

    statements: list[Statement]
    is_of_arroyo: bool
    """Whether a table has a connector or an option that only Arroyo has."""
    warnings: list[SpecError] = field(default_factory=list)
    errors: list[SpecError] = field(default_factory=list)


def resolve_tables(file: File, statements: Sequence[Statement]) -> Tables:
    """Returns the statements with the last one of repeated options, and DECIMAL as in Arroyo.

    A repeated option is a warning in a script of Arroyo, and an error in other scripts.
    """
    written = {*_written(statements)}
    resolved = Tables([], any(_is_of_arroyo(each, written) for each in statements))
    for statement in statements:
        if isinstance(statement, CreateTable):
            statement = _resolved(file, statement, resolved)
        resolved.statements.append(statement)
    return resolved


def _written(statements: Sequence[Statement]) -> Iterator[str]:
    """Yields the names of tables that are sinks."""
    for statement in statements:
        if isinstance(statement, Insert):
            yield statement.table.value.lower()
        elif isinstance(statement, CreateTable) and statement.options and statement.query:
            yield statement.name.value.lower()


def _is_of_arroyo(statement: Statement, written: set[str]) -> bool:
    if not isinstance(statement, CreateTable):
        return False
    kind: Kind = "sink" if statement.name.value.lower() in written else "source"
    return is_arroyo_table(statement.options or [], kind)


def _resolved(file: File, table: CreateTable, tables: Tables) -> CreateTable:
    """Returns a table, and adds its warnings and errors."""
    options, repeated = last_options(table.options or [])
    if repeated and not tables.is_of_arroyo:
        try:
            check_unique(file, table.options or [])
        except SpecError as error:
            tables.errors.append(error)
    elif repeated:
        tables.warnings.extend(_ignored(file, option) for option in repeated)
    columns = _with_decimals(table.columns) if tables.is_of_arroyo else table.columns
    return replace(table, columns=columns, options=options if table.options is not None else None)


def _ignored(file: File, option: Option) -> SpecError:
    return SpecError(
        f'the option "{option.name}" is repeated: this value has no effect',
        code="duplicate-key",
        where=file.location(option.path[0].start, option.path[-1].end),
        hint="remove one of the options",
    )


def _with_decimals(columns: TableColumns) -> TableColumns:
    typed = [
        replace(
            column, type=column.type._replace(value=translate_type(column.type.value, _DECIMAL))
        )
        for column in columns.columns
    ]
    return replace(columns, columns=typed)
