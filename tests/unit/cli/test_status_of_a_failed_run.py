"""The status of a pipeline whose last run has failed."""

from __future__ import annotations

import pytest

from penstock.cli.status import print_status
from penstock.runtime.state.status import FinishedRun, Status


def test_the_errors_of_the_last_run_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    error = {
        "code": "unreachable", "message": "no\x1b[2J server", "hint": "Start the server.",
        "file": "shop.yaml", "line": 3,
    }  # fmt: skip
    times = ("2026-03-01T10:00:00Z", "2026-03-01T10:00:02Z")
    earlier = {**error, "message": "an earlier one"}
    runs = tuple(
        FinishedRun(id, *times, "failed", errors={"orders": [each]})
        for id, each in (("b", error), ("a", earlier))
    )
    print_status("shop", Status(None, None, runs, complete=False))
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("    error[unreachable]: no\\u001b[2J server (shop.yaml:3)")
    assert lines[place - 1].endswith("failed") and lines[place + 1] == "    Start the server."
    assert not any("an earlier one" in line for line in lines)
