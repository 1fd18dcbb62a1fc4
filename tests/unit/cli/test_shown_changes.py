"""Changes since the last run, as `check` and `explain` show them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import app
from penstock.cli.main import main
from penstock.plan.fingerprint import fingerprint
from penstock.runtime.state.directory import StateDirectory

PIPELINE = """
name: shop
sources:
  orders:
    type: memory
    rows: [{id: 1}]
    schema: id BIGINT, at TIMESTAMP
    watermark: {column: at}
transforms:
  dear: {type: filter, from: orders, where: id > 1}
  counts:
    type: sql
    sql: SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(at, '10 seconds')
sinks:
  out: {type: memory, from: dear}
  windows: {type: memory, from: counts}
"""
FILTER = '"dear": where changed; applies to new rows'
WINDOW = '"counts": sql changed; its state was computed by the old definition'
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Said:
    """Runs a command on a changed pipeline. The state is that of `PIPELINE`."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    state = StateDirectory(plan.state)
    with state.locked():
        state.write("plan.json", fingerprint(plan, state.key()))

    def run(old: str, new: str, command: str, *options: str) -> tuple[int, str, str]:
        path.write_text(PIPELINE.replace(old, new))
        code = main([command, "shop.yaml", *options])
        return code, *capsys.readouterr()

    return run


def test_a_change_that_applies_to_new_rows(said: Said) -> None:
    code, out, _ = said("id > 1", "id > 2", "check", "--level", "static")
    assert (code, f"changed since the last run: transform {FILTER}" in out) == (0, True)
    code, out, _ = said("id > 1", "id > 2", "explain", "--static")
    assert code == 0
    assert f"changes since the last run\n  + transform {FILTER}\n" in out


@pytest.mark.slow
def test_a_change_that_does_not_fit_the_state(said: Said) -> None:
    code, _, err = said("10 seconds", "20 seconds", "check", "--level", "static")
    assert code != 0
    assert "changed-plan" in err and WINDOW in err
    code, out, _ = said("10 seconds", "20 seconds", "explain", "--static")
    assert code == 0
    assert f"  - transform {WINDOW}\n" in out and "--fresh" in out


def test_changes_as_json(said: Said) -> None:
    expected = {
        "subject": 'transform "dear"',
        "effect": "compatible",
        "reason": "where changed; applies to new rows",
    }
    for command in (("check", "--level", "static"), ("explain", "--static")):
        _, out, _ = said("id > 1", "id > 2", *command, "--json")
        assert json.loads(out)["changes"] == [expected]


def test_an_unchanged_pipeline(said: Said) -> None:
    assert "change" not in said("", "", "check", "--level", "static")[1]
    assert "changes" not in said("", "", "explain", "--static")[1]
