"""Commands of dead letters: unknown and ambiguous IDs, running pipelines, exit codes."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import app
from penstock.cli import dead
from penstock.control import PipelineControl
from penstock.core.errors import StateError, UserError
from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER
from penstock.runtime.dead_letters import replay as replay_module
from penstock.runtime.dead_letters.replay_record import ReplayRecord, ReplayResult, SkippedNode
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory

PIPELINE = """
name: shop
sources: {orders: {type: memory, rows: [{id: 1}]}}
sinks: {out: {type: blackhole, from: orders}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Returns the file of a pipeline with two dead letters."""
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE)
    letters = [
        {"id": identity, "pipeline": "shop", "node": "orders", "stage": "decode", "code": "bad",
         "message": "no", "payload": payload, "attempt": 1, "time": dt.datetime.now(dt.UTC)}
        for identity, payload in (("3f1", b"a"), ("3f2", b"\xff"))
    ]  # fmt: skip
    store = DeadLetters(app.plan(file).state / "dead_letters")
    store.put("out-00000000", pa.Table.from_pylist(letters, schema=DEAD_LETTER))
    return file


def test_an_ambiguous_id_is_an_error(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="2 dead letters match") as caught:
        dead.show((str(shop), "3f"))
    assert (caught.value.code, caught.value.hint) == (
        "ambiguous-id", "Write more characters of the id: 3f1, 3f2.",
    )  # fmt: skip
    dead.show((str(shop), "3f1"), json=True)
    assert '"payload": "a"' in capsys.readouterr().out
    dead.show((str(shop), "3f2"), json=True)
    assert '"payload_hex": "ff"' in capsys.readouterr().out
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
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    result: ReplayResult, code: int, text: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(PipelineControl, "replay", lambda *_, **__: result)
    assert dead.replay([shop]) == code
    assert text in capsys.readouterr().out


def test_removed_dead_letters_are_neither_listed_nor_replayed(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dead.remove([shop], id="3f1", yes=True) == 0
    assert capsys.readouterr().out == "shop: removed 1 dead letter\n"
    control = PipelineControl.of(app.plan(shop))
    assert control.dead_letters().ids == {"3f2"}
    with pytest.raises(UserError, match='no dead letter with the ID "3f1"') as caught:
        control.replay({"3f1"})
    assert (caught.value.code, caught.value.hint) == ("no-dead-letter", 'did you mean "3f2"?')
    dead.remove([shop], yes=True)
    assert control.replay() == control.replay(set()) == ReplayResult()
    assert not control.state.lock.exists(), "a replay of nothing starts no session"


def test_the_letters_of_an_interrupted_replay_are_known(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry of a replay that was killed before its record was removed finishes it."""
    control = PipelineControl.of(app.plan(shop))
    ReplayRecord("replay-1", frozenset({"3f0"}), written=True)._save(control.state)
    finished = ReplayResult(finished=1)
    monkeypatch.setattr(replay_module, "replay", lambda *_, **__: finished)
    assert control.replay({"3f0"}) == control.replay({"3f0", "3f1"}) == finished
    with pytest.raises(UserError, match="nor with 1 more of the IDs"):
        control.replay({"3f0", "3f8", "3f9"})


def test_a_replay_during_a_run_says_to_stop_it(shop: Path) -> None:
    control = PipelineControl.of(app.plan(shop))
    state = StateDirectory(shop.parent / "locked")
    with state.locked():
        shutil.copytree(control.state.dead_letters, state.dead_letters)
    control = PipelineControl(control.plan, state)
    with state.locked(), pytest.raises(StateError) as caught:
        control.replay()
    assert caught.value.code == "already-running"
    assert (
        caught.value.hint == "Stop the pipeline with penstock stop, then replay its dead letters."
    )
