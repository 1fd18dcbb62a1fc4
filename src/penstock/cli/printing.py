"""Output of commands: JSON, tables and warnings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.core.known_secrets import conceal
from penstock.core.text import printable
from penstock.sdk.columns.text_table import terminal_width, text_table, wrapped

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNLIMITED = 10_000


class _Buffer(StringIO):
    """Output that is printed later, as wide as the terminal."""

    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal


@contextmanager
def concealed_output() -> Iterator[None]:
    """Prints the output of the context at its end, with asterisks in place of known secrets."""
    buffer = _Buffer()
    buffer.is_terminal = sys.stdout.isatty()
    try:
        with redirect_stdout(buffer):
            yield
    finally:
        print(conceal(buffer.getvalue()), end="", flush=True)


def print_json(value: Any) -> None:
    """Prints a JSON document; bytes as base64, times as ISO-8601, dataclasses as objects."""
    text = to_json(value, indent=2, bytes_mode="base64", inf_nan_mode="strings")
    print(printable(text.decode()))


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "", wrap: bool = False
) -> None:
    """Prints a table. The names of columns may be empty."""
    columns = [(name, False) for name in header]
    for line in text_table(columns, rows, wrap=wrap, indent=len(indent)):
        print(f"{indent}{line}")


def print_text(text: str, indent: str = "") -> None:
    """Prints a text, on a terminal without lines that are wider. Indented lines stay as they are.

    Further lines of a paragraph are indented as well.
    """
    width = terminal_width()
    for line in text.splitlines():
        fits = len(indent) + len(line) <= width or line.startswith(" ")
        print("\n".join([f"{indent}{line}"] if fits else wrapped(line, width, indent)))


def print_item(text: str, indent: str) -> None:
    """Prints an item of a list, on a terminal without lines that are wider."""
    lines = wrapped(text, terminal_width() - len(indent) - 2)
    print(
        "\n".join(f"{indent}{'  ' if number else '- '}{line}" for number, line in enumerate(lines))
    )


def print_renderable(renderable: RenderableType) -> None:
    """Prints a part of Rich: as wide as the terminal, without line breaks without a terminal."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(renderable)
        return
    console = Console(file=sys.stdout, highlight=False, width=_UNLIMITED)
    with console.capture() as capture:
        console.print(renderable)
    for line in capture.get().splitlines():
        print(line.rstrip(), flush=True)


def print_warnings(warnings: Iterable[PenstockError]) -> None:
    """Prints warnings on standard error."""
    for warning in warnings:
        print(format_error(warning).replace("error[", "warning[", 1) + "\n", file=sys.stderr)
