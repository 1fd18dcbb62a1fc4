"""The handlers against recorded runs of stream-data-processor, and the rules that differ."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.testing.handler_cases import parsers

HERE = Path(__file__).parent / "handlers"
RECORDED = HERE / "recorded.json"
NOW = 1_795_167_806
"""The time at which the runs were recorded."""


def comparable(output: dict[str, Any]) -> tuple[Any, ...]:
    """Returns an output batch without the order of its columns and the number of its batch."""
    columns = output["columns"]
    order = sorted(range(len(columns)), key=lambda i: (columns[i]["name"], columns[i]["type"]))
    rows = [[value(row[i]) for i in order] for row in output["rows"]]
    call = output["call.batch"].split(".")[0]
    return call, [columns[i] for i in order], output["group"], rows


def value(cell: Any) -> Any:
    if isinstance(cell, float) and math.isfinite(cell):
        return round(cell, 9)
    return str(cell) if isinstance(cell, float) else cell


def run(path: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> list[dict[str, Any]]:
    assert main(["sdp", str(path)]) == code
    cases: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["cases"]
    return cases


def cases_of(path: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
    return cases


def test_recorded_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers.time, "time", lambda: NOW)
    mended = {case["title"]: case for case in cases_of(HERE / "mended.json")}
    recorded = cases_of(RECORDED)
    results = run(RECORDED, capsys)
    assert len(results) == len(recorded) == 91
    for expected, result in zip(recorded, results, strict=True):
        title = expected["title"]
        difference = mended.pop(title, {})
        assert difference == {} or difference["rule"]
        expected = {**expected, **difference, "exit": 0}
        assert result["status"] == expected["status"], title
        found = sorted(map(repr, map(comparable, result["outputs"])))
        assert found == sorted(map(repr, map(comparable, expected["outputs"]))), title
        assert result.get("rejected") == expected.get("rejected"), title
        assert result["calls"] == expected["calls"] and result["exit"] == 0
    assert not mended
