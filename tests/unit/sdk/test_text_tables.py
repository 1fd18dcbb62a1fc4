"""Tables on terminals: as wide as the terminal, with a note of the columns that are not shown."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from penstock.sdk.columns import text_table as tables
from penstock.sdk.columns.text_table import GrowingTable

BOLD = re.compile(r"\x1b\[[0-9;]*m")


def text_table(*args: Any, **options: Any) -> list[str]:
    """The lines without their styles."""
    return [BOLD.sub("", line).rstrip() for line in tables.text_table(*args, **options)]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> Any:
    def resize(number: int) -> None:
        monkeypatch.setenv("COLUMNS", str(number))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stdout", _Terminal())

    return resize


def test_columns_that_do_not_fit_are_counted(columns: Any) -> None:
    columns(80)
    header = [(f"column_{n}", True) for n in range(20)]
    lines = text_table(header, [[str(n) for n in range(20)]])
    assert lines == [
        "column_0  column_1  column_2  column_3  column_4  … 15 columns not shown",
        "       0         1         2         3         4  …",
    ]


def test_wide_columns_are_narrowed_before_columns_are_left_out(columns: Any) -> None:
    columns(30)
    lines = text_table([("id", True), ("text", False), ("n", True)], [["1", "x" * 50, "22"]])
    assert lines == [f"id  text{' ' * 21}n", f" 1  {'x' * 21}…  22"]


def test_at_least_one_column_is_shown_on_the_narrowest_terminal(columns: Any) -> None:
    columns(12)
    lines = text_table([("a" * 40, False), ("b" * 40, False)], [["x", "y"]])
    assert lines == ["aaaaaaa…  +1", "x         …"]


def test_no_column_is_left_out_without_a_terminal() -> None:
    [head, row] = text_table([("c" * 9, False)] * 200, [["x"] * 200])
    assert head.split() == ["c" * 9] * 200 and row.split() == ["x"] * 200


def test_the_last_column_wraps(columns: Any) -> None:
    columns(20)
    assert text_table([("a", False), ("b", False)], [["x", "one two three four"]], wrap=True) == [
        "a  b", "x  one two three", "   four",
    ]  # fmt: skip


def test_a_heading_is_repeated_if_a_column_widens() -> None:
    table, header = GrowingTable(), [("a", False), ("b", False)]
    assert table.lines(header, [["x", "y"]]) == ["a  b", "x  y"]
    assert table.lines(header, [["z", "y"]]) == ["z  y"]
    assert table.lines(header, [["long", "y"]]) == ["a     b", "long  y"]
    assert table.lines(header, [["z", "y"]]) == ["z     y"]
