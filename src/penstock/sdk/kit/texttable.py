"""Rows as a table of aligned text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.core.text import shorten

WIDEST_CELL = 60


def text_table(
    header: Iterable[tuple[str, bool]], rows: Iterable[Sequence[str]], *, wrap: bool = False
) -> list[str]:
    """The lines of a table. `header` has each column's name and whether it stands at the right.

    As wide as the terminal, or without limit where there is none; with `wrap` the last column
    continues on further lines, otherwise cells are cut.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = list(header)
    table = Table(
        box=None, pad_edge=False, header_style="bold", show_header=any(name for name, _ in columns)
    )
    for number, (name, right) in enumerate(columns, 1):
        folds = wrap and number == len(columns)
        table.add_column(
            Text(name),
            justify="right" if right else "left",
            no_wrap=not folds,
            overflow="fold" if folds else "ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 10_000)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def heading(field: pa.Field) -> tuple[str, bool]:
    """A column's header: numbers stand at the right."""
    kind = field.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return field.name, bool(number)


def cell(value: pa.Scalar) -> str:
    """A value in one short line; nothing for null."""
    if not value.is_valid:
        return ""
    if pa.types.is_timestamp(value.type):
        text = str(value.cast(pa.timestamp(value.type.unit)))
        return text.rstrip("0").rstrip(".") if "." in text else text
    return shorten(" ".join(str(value.as_py()).split()), WIDEST_CELL)
