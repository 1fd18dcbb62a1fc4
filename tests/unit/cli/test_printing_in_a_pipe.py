"""Output without a terminal has no line breaks of its own."""

from __future__ import annotations

import pytest
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from penstock.cli.printing import print_renderable
from penstock.cli.status import print_status
from penstock.observe.metrics import Metrics
from penstock.runtime.state.status import Status


def test_long_lines_are_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hint = "  hint: " + "word " * 40 + "end"
    print_renderable(Group(Text("FAILED"), Padding(Text(hint), (0, 0, 0, 8))))
    assert capsys.readouterr().out == f"FAILED\n{' ' * 8}{hint}\n"


def test_the_table_of_status_is_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "a_sink_with_a_name_" * 5
    metrics = Metrics()
    metrics.flow(name, "sink", "files").add(1_234_567)
    print_status("shop", Status(None, metrics.snapshot(), (), complete=False))
    assert any(name in line and "1,234,567" in line for line in capsys.readouterr().out.split("\n"))
