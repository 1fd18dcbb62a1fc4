"""Output without a terminal has no line breaks of its own."""

from __future__ import annotations

import pytest
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from penstock.cli.printing import print_renderable


def test_long_lines_are_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hint = "  hint: " + "word " * 40 + "end"
    print_renderable(Group(Text("FAILED"), Padding(Text(hint), (0, 0, 0, 8))))
    assert capsys.readouterr().out == f"FAILED\n{' ' * 8}{hint}\n"
