"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    cells = [[" ".join(c.split()).replace("|", "\\|") for c in row] for row in lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells) + "\n"
