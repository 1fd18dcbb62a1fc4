"""Commands of dead letters: ambiguous IDs, and the exit code of a replay."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.cli import dead
from penstock.core.errors import UserError
from penstock.runtime.dead_letters.replay_record import ReplayResult, SkippedNode

LETTERS = pa.table({"id": ["3f1", "3f2"], "payload": [b"a", b"b"], "header": [None, None]})


def select(monkeypatch: pytest.MonkeyPatch, dead_letters: pa.Table) -> None:
    plan: Any = SimpleNamespace(name="shop")
    monkeypatch.setattr(dead, "_select", lambda *_: (plan, None, dead_letters))


def test_an_ambiguous_id_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    select(monkeypatch, LETTERS)
    with pytest.raises(UserError, match="2 dead letters match") as caught:
        dead.show(("shop.yaml", "3f"))
    assert (caught.value.code, caught.value.hint) == (
        "ambiguous-id", "Write more characters of the id: 3f1, 3f2.",
    )  # fmt: skip
    select(monkeypatch, LETTERS.slice(1))
    dead.show(("shop.yaml", "3f2"), json=True)
    assert '"payload": "b"' in capsys.readouterr().out
    with pytest.raises(UserError, match="the file of the pipeline and an id"):
        dead.show(("3f2",))


@pytest.mark.parametrize(
    ("result", "code", "text"),
    [
        (ReplayResult(replayed=2), 0, "2 dead letters replayed\n"),
        (ReplayResult(replayed=1, failed=1), 1, "1 failed again and was kept"),
        (ReplayResult(skipped=[SkippedNode("hourly", 2, "it has state")]), 1, "2 of hourly not"),
    ],
    ids=["replayed", "failed", "skipped"],
)
def test_the_exit_code_of_a_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    result: ReplayResult, code: int, text: str,
) -> None:  # fmt: skip
    select(monkeypatch, LETTERS)
    monkeypatch.setattr(app, "replay", lambda *_, **__: result)
    assert dead.replay((Path("shop.yaml"),)) == code
    assert text in capsys.readouterr().out
