"""Tables of aligned text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.core.text import shorten
from penstock.sdk.columns.value_text import json_of, leaf_text

MAX_CELL_WIDTH = 60


def text_table(
    header: Iterable[tuple[str, bool]],
    rows: Iterable[Sequence[str]],
    *,
    wrap: bool = False,
    min_widths: Sequence[int] = (),
) -> list[str]:
    """Returns the lines of a table. `header` has the name and right alignment of each column.

    The table is as wide as the terminal, or unlimited without a terminal. With `wrap` the last
    column wraps, otherwise long cells are truncated. `min_widths` has the minimum width of each
    column, or is empty.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = list(header)
    table = Table(
        box=None, pad_edge=False, header_style="bold", show_header=any(name for name, _ in columns)
    )
    for number, (name, right) in enumerate(columns, 1):
        wraps = wrap and number == len(columns)
        table.add_column(
            Text(name),
            justify="right" if right else "left",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
            min_width=min_widths[number - 1] if min_widths else None,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 10_000)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def heading(field: pa.Field) -> tuple[str, bool]:
    """Returns the header of a column. Numbers are aligned right."""
    kind = field.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return field.name, bool(number)


def cell(value: pa.Scalar, field: pa.Field) -> str:
    """Returns a value as one short line: nested values as JSON, empty for null."""
    if not value.is_valid:
        return ""
    if pa.types.is_timestamp(value.type):
        text = str(value.cast(pa.timestamp(value.type.unit)))
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = json_of(value, field) if pa.types.is_nested(value.type) else leaf_text(value)
    return shorten(" ".join(text.split()), MAX_CELL_WIDTH)
