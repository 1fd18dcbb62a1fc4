"""The ID of a state directory, and the sinks of the runs that own it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.app import plan
from penstock.core.errors import StateError
from penstock.plan.rewrite import assign_owner
from penstock.runtime.state.directory import StateDirectory

PIPELINE = """\
name: orders
sources:
  numbers: {type: generate, rate: 1, fields: {id: sequence}}
sinks:
  out: {type: files, from: numbers, path: out}
dead_letter: {type: files, path: dead}
"""


def test_the_id_outlives_a_reset(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "one")
    id_ = state.id()
    state.reset()
    assert StateDirectory(tmp_path / "one").id() == id_
    assert StateDirectory(tmp_path / "two").id() != id_


def test_all_sinks_of_a_run_have_its_owner(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(PIPELINE)
    planned = plan(tmp_path / "orders.yaml")
    owned = assign_owner(planned, "id-1")
    assert owned.nodes["out"].sink.context.owner == "id-1"
    assert owned.dead_letter is not None
    assert owned.dead_letter.sink.context.owner == "id-1"
    assert planned.nodes["out"].sink.context.owner == ""


@pytest.mark.slow
def test_a_running_pipeline_is_named_with_its_state(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with state.locked(), pytest.raises(StateError) as caught, StateDirectory(tmp_path).locked():
        pass
    assert caught.value.code == "already-running"
    assert str(tmp_path) in str(caught.value.detail)
    assert "penstock stop" in str(caught.value.hint)
