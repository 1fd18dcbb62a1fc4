"""Tables of aligned text."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.core.text import plural, printable, shorten
from penstock.sdk.columns.display import json_of, leaf_text

MAX_CELL_WIDTH = 80
MIN_WIDTH = 8
"""The width down to which wide columns are narrowed before columns are left out."""
_GAP = 2
_UNLIMITED = 10_000


def text_table(
    header: Iterable[tuple[str, bool]],
    rows: Iterable[Sequence[str]],
    *,
    wrap: bool = False,
    min_widths: Sequence[int] = (),
    indent: int = 0,
) -> list[str]:
    """Returns the lines of a table. `header` has the name and right alignment of each column.

    The table is as wide as the terminal, or unlimited without a terminal. With `wrap` the last
    column wraps at spaces, otherwise long cells are truncated. If less than half of the
    terminal is left for the wrapped column, its cells are below the others. If the terminal is too
    narrow for all columns, the last one is the number of columns that are not shown. `min_widths`
    has the minimum width of each column, or is empty. `indent` is the width by which the lines are
    indented later.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = terminal_width() - indent
    console = Console(file=sys.stdout, width=width)
    columns = [(printable(name), right) for name, right in header]
    cells = [[printable(text) for text in row] for row in rows]
    natural = _natural_widths([name for name, _ in columns], cells, min_widths)
    if wrap and sum(natural) + _GAP * len(natural) > width:
        left = width - sum(natural[:-1]) - _GAP * (len(natural) - 1)
        if left < width // 2:
            return [line for row in cells for line in _stacked(columns, row, width)]
        natural[-1] = left
    widths = _widths_shown(natural, width)
    shown = len(widths)
    if shown < len(columns):
        note = _note(len(columns) - shown, console.width)
        columns, cells = [*columns[:shown], (note, False)], [[*r[:shown], "…"] for r in cells]
        widths = [*widths, len(note)]
    table = Table(
        box=None, pad_edge=False, header_style="bold", show_header=any(name for name, _ in columns)
    )
    for number, ((name, right), width) in enumerate(zip(columns, widths, strict=True), 1):
        wraps = wrap and number == len(columns)
        table.add_column(
            Text(name),
            justify="right" if right else "left",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
            width=width,
        )
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def terminal_width() -> int:
    """Returns the number of columns of the terminal; without a terminal a large number."""
    from rich.console import Console

    return Console(file=sys.stdout).width if sys.stdout.isatty() else _UNLIMITED


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Returns the lines of a text, broken at spaces. Words are whole, also longer ones."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _stacked(columns: Sequence[tuple[str, bool]], row: Sequence[str], width: int) -> list[str]:
    """Returns a row as lines: its cells with the names of their columns, then the last cell."""
    (_, first), *others = [(name, cell) for (name, _), cell in zip(columns, row, strict=True)]
    *facts, text = [f"{name}: {cell}" if name else cell for name, cell in others if cell]
    head = "  ".join([first, *facts])
    lines = wrapped(head, width)
    return [*lines[:1], *(f"  {line}" for line in lines[1:]), *wrapped(text, width, "    ")]


class GrowingTable:
    """A table whose rows arrive in parts, below one heading.

    The heading is repeated if a column widens.
    """

    def __init__(self) -> None:
        self._widths: list[int] = []

    def lines(self, header: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> list[str]:
        """Returns the lines of the next rows."""
        before = self._widths
        self._widths = _natural_widths([name for name, _ in header], rows, before)
        lines = text_table(header, rows, min_widths=self._widths)
        return lines[1:] if self._widths == before else lines


def _natural_widths(
    names: Sequence[str], rows: Iterable[Sequence[str]], min_widths: Sequence[int]
) -> list[int]:
    """Returns the widths at which no cell is truncated."""
    from rich.cells import cell_len

    columns = zip(names, *rows, strict=True)
    needed = [max(1, *map(cell_len, column)) for column in columns]
    return [max(pair) for pair in zip(needed, min_widths or needed, strict=True)]


def _widths_shown(widths: Sequence[int], available: int) -> list[int]:
    """Returns the widths of the first columns, as many as there is space for, and at least one."""
    for count in range(len(widths), 1, -1):
        rest = len(widths) - count
        space = available - _GAP * (count - 1) - (_GAP + len(_note(rest, available)) if rest else 0)
        if sum(min(width, MIN_WIDTH) for width in widths[:count]) <= space:
            return _narrowed(widths[:count], space)
    rest = len(widths) - 1
    return _narrowed(widths[:1], available - (_GAP + len(_note(rest, available)) if rest else 0))


def _narrowed(widths: Sequence[int], space: int) -> list[int]:
    """Returns the widths with the widest ones narrowed, so that they fit into the space."""
    limit = max(widths, default=0)
    while limit > 1 and sum(min(width, limit) for width in widths) > space:
        limit -= 1
    narrowed = [min(width, limit) for width in widths]
    left = space - sum(narrowed)
    for index in reversed(range(len(widths))):
        more = max(min(left, widths[index] - narrowed[index]), 0)
        narrowed[index] += more
        left -= more
    return narrowed


def _note(columns: int, available: int) -> str:
    """Returns the heading that counts the columns that are not shown."""
    note = f"… {plural(columns, 'column')} not shown"
    return note if len(note) <= available // 2 else f"+{columns}"


def heading(field: pa.Field) -> tuple[str, bool]:
    """Returns the header of a column. Numbers are aligned right."""
    kind = field.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return printable(field.name), bool(number)


def cell(value: pa.Scalar, field: pa.Field) -> str:
    """Returns a value as one short line: nested values as JSON, empty for null."""
    if not value.is_valid:
        return ""
    if pa.types.is_timestamp(value.type):
        text = str(value.cast(pa.timestamp(value.type.unit)))
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = json_of(value, field) if pa.types.is_nested(value.type) else leaf_text(value)
    return shorten(printable(" ".join(text.split())), MAX_CELL_WIDTH)
