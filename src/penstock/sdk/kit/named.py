"""Columns that options name: that they are there, and hold what is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk.kit.columns import sql_name


def need_columns(names: list[str], columns: pa.Schema, option: str) -> Iterator[OptionError]:
    """The mistakes of an option that is a list of columns."""
    for index, name in enumerate(names):
        yield from need_column(name, columns, option, index)


def need_column(
    name: str,
    columns: pa.Schema,
    *option: str | int,
    right: Callable[[pa.DataType], bool] | None = None,
    expected: str | None = None,
) -> Iterator[OptionError]:
    """The mistake that `option` names a column that is missing or whose type is not `right`.

    None if all is well. `expected` says what is right.
    """
    path = ".".join(step for step in option if isinstance(step, str))
    if name not in columns.names:
        yield OptionError.of(
            *option,
            message=f'{path} names "{name}", and there is no such column',
            code="unknown-column",
            hint=did_you_mean(name, columns.names),
        )
    elif right is not None and not right(columns.field(name).type):
        yield OptionError.of(
            *option,
            message=f'{path} names "{name}", which is {sql_name(columns.field(name).type)}',
            code="column-type",
            hint=expected,
        )


def need_text(name: str, columns: pa.Schema, *option: str | int) -> Iterator[OptionError]:
    """The mistake that `option` names a column that is missing or has no text."""
    return need_column(
        name,
        columns,
        *option,
        right=lambda type_: not pa.types.is_nested(type_),
        expected="expected a column that holds a single value",
    )
