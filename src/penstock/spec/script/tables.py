"""The tables of a script: repeated options, and types whose meaning its dialect decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from penstock.core.errors import SpecError
from penstock.spec.dialects.registry import find_dialect
from penstock.spec.script.dialect import Dialect, Kind
from penstock.spec.script.options import Option, check_unique, last_options
from penstock.spec.script.statements import CreateTable, Insert, Statement
from penstock.spec.script.table import TableColumns
from penstock.spec.tree.nodes import File
from penstock.sql.datafusion.types import translate_type


@dataclass(frozen=True)
class Tables:
    """The statements of a script, in which tables have each option once."""

    statements: list[Statement]
    dialect: Dialect
    warnings: list[SpecError] = field(default_factory=list)
    errors: list[SpecError] = field(default_factory=list)


def resolve_tables(file: File, statements: Sequence[Statement]) -> Tables:
    """Returns the statements with the last one of repeated options, and DECIMAL of the dialect."""
    resolved = Tables([], find_dialect(_uses(statements, {*_written(statements)})))
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


def _uses(
    statements: Sequence[Statement], written: set[str]
) -> Iterator[tuple[Sequence[Option], Kind]]:
    """Yields the options of tables, and whether they are sources or sinks."""
    for each in statements:
        if isinstance(each, CreateTable):
            yield each.options or [], "sink" if each.name.value.lower() in written else "source"


def _resolved(file: File, table: CreateTable, tables: Tables) -> CreateTable:
    """Returns a table, and adds its warnings and errors."""
    options, repeated = last_options(table.options or [])
    if repeated and not tables.dialect.replaces_repeated_options:
        try:
            check_unique(file, table.options or [])
        except SpecError as error:
            tables.errors.append(error)
    elif repeated:
        tables.warnings.extend(
            _warning(
                file, option, f'the option "{option.name}" is repeated: this value has no effect',
                code="duplicate-key", hint="remove one of the options",
            )
            for option in repeated
        )  # fmt: skip
    tables.warnings.extend(
        _warning(file, option, f'the option "{option.name}" has no effect: {reason}',
                 code="unused-option")
        for option, reason in tables.dialect.unneeded(options)
    )  # fmt: skip
    decimal, columns = tables.dialect.decimal, table.columns
    if decimal is not None:
        columns = _with_decimals(columns, decimal)
    return replace(table, columns=columns, options=options if table.options is not None else None)


def _warning(
    file: File, option: Option, message: str, *, code: str, hint: str | None = None
) -> SpecError:
    where = file.location(option.path[0].start, option.path[-1].end)
    return SpecError(message, code=code, where=where, hint=hint)


def _with_decimals(columns: TableColumns, decimal: str) -> TableColumns:
    typed = [
        replace(column, type=column.type._replace(value=translate_type(column.type.value, decimal)))
        for column in columns.columns
    ]
    return replace(columns, columns=typed)
