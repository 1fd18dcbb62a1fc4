"""Checks of options that name columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.type_names import sql_name


def check_columns(names: list[str], columns: pa.Schema, option: str) -> Iterator[OptionError]:
    """Yields an error for each unknown column of an option that is a list of columns."""
    for index, name in enumerate(names):
        yield from check_column(name, columns, option, index)


def check_column(
    name: str,
    columns: pa.Schema,
    *option: str | int,
    accepts: Callable[[pa.DataType], bool] | None = None,
    expected: str | None = None,
) -> Iterator[OptionError]:
    """Yields an error if the column that `option` names is missing or `accepts` rejects its type.

    `option` is the path of the option. `expected` is the hint about the type.
    """
    path = ".".join(step for step in option if isinstance(step, str))
    if name not in columns.names:
        yield OptionError.of(
            *option,
            message=f'{path}: unknown column "{name}"',
            code="unknown-column",
            hint=did_you_mean(name, columns.names),
        )
    elif accepts is not None and not accepts(columns.field(name).type):
        yield OptionError.of(
            *option,
            message=f'{path}: column "{name}" has the type {sql_name(columns.field(name).type)}',
            code="wrong-type",
            hint=expected,
        )


def check_added_columns(
    kept: Iterable[pa.Field], added: Iterable[pa.Field], origin: str
) -> Iterator[OptionError]:
    """Yields an error for each column of `origin` that the input has, too."""
    known = {fold(field.name) for field in kept}
    for field in added:
        if fold(field.name) in known:
            yield OptionError.of(
                message=f'the input has a column "{field.name}", as {origin} has',
                code="duplicate-column",
                hint="Rename the column of the input before, or leave out the other one.",
            )


def check_text_column(name: str, columns: pa.Schema, *option: str | int) -> Iterator[OptionError]:
    """Yields an error if the column that `option` names is missing or has a nested type."""
    return check_column(
        name,
        columns,
        *option,
        accepts=lambda type_: not pa.types.is_nested(type_),
        expected="Use a column that holds a single value.",
    )


def check_primary_key(
    primary_key: Sequence[str], used: Collection[str], *option: str | int
) -> Iterator[OptionError]:
    """Yields an error if rows of different primary keys can overwrite each other.

    `used` are the columns of the key that `option` sets for the outside system.
    """
    missing = [name for name in primary_key if name not in used]
    if missing:
        yield OptionError.of(
            *option,
            message=f"rows that differ only in {', '.join(missing)} would overwrite each other",
            code="primary-key",
            hint=f"Add {missing[0]} to {option[0]}.",
        )
