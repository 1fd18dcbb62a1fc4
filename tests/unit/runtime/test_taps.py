"""Taps: requests of listeners in the state directory, and answers of the run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import app
from penstock.core.errors import PlanError, StateError
from penstock.core.known_secrets import remember_secret
from penstock.core.log import Silent
from penstock.plan.model import Plan
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.taps import listener, run_taps
from penstock.runtime.taps.files import DIRECTORY, MAX_ANSWERS, REQUEST
from penstock.runtime.taps.listener import Tap
from penstock.runtime.taps.run_taps import RunTaps

PIPELINE = """
name: shop
sources:
  orders:
    type: generate
    fields: {id: {type: sequence}, at: {type: timestamp}}
    watermark: {column: at, delay: 1 minute}
transforms:
  large: {type: filter, from: orders, where: id > 5}
  early: {type: filter, from: orders, where: id < 5}
  counts:
    type: sql
    sql: SELECT window.start, count(*) AS n FROM early GROUP BY window(at, '1 minute')
sinks:
  out: {type: blackhole, from: large}
  totals: {type: blackhole, from: counts}
"""
ROWS = pa.table({"id": [6, None, 8], "note": ["a", "", "hunter-22"]})


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    return app.plan(tmp_path / "shop.yaml")


@pytest.fixture
def state(plan: Plan) -> Iterator[StateDirectory]:
    """The state directory of a run."""
    state = StateDirectory(plan.state)
    with state.locked():
        yield state


@pytest.fixture
def taps(plan: Plan, state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> RunTaps:
    monkeypatch.setattr(run_taps, "PERIOD_SECONDS", 0.0)
    return RunTaps(plan, state.root, Silent())


def test_rows_reach_the_listener_of_a_node(
    plan: Plan, state: StateDirectory, taps: RunTaps
) -> None:
    query = next(each for each in plan.queries if "out" in each.sinks)
    assert taps.wanted(query) == {}
    first, second = Tap(state, "out", 2), Tap(state, "large", 3)
    taps.poll()
    assert taps.wanted(query) == {"large": 3}, "the rows of a sink are its input"
    taps.pass_rows(query, 7, "large", ROWS)
    opened, answer = first.poll()
    assert opened["opened"] == "out"
    assert answer["batch"] == 7
    assert answer["columns"] == [
        {"name": "id", "type": "BIGINT"},
        {"name": "note", "type": "STRING"},
    ]
    assert answer["rows"] == [["6", "a"], [None, ""]]
    assert len(second.poll()[1]["rows"]) == 3
    assert first.poll() == [], "each answer is read once"
    taps.miss(query, 8, "large", ValueError("no rows"))
    assert "no rows" in second.poll()[0]["missed"]
    first.close()
    second.close()
    taps.poll()
    assert taps.wanted(query) == {}
    assert list((state.root / DIRECTORY).iterdir()) == []


def test_a_batch_is_copied_once_a_second(
    plan: Plan, state: StateDirectory, taps: RunTaps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_taps, "PERIOD_SECONDS", 60.0)
    query = next(each for each in plan.queries if "out" in each.sinks)
    Tap(state, "large", 2)
    taps.poll()
    assert (taps.wanted(query), taps.wanted(query)) == ({"large": 2}, {})


@pytest.mark.parametrize(
    ("node", "code", "hint"),
    [("lage", "unknown-node", 'did you mean "large"?'),
     ("early", "no-tap", 'Tap counts, the next node whose rows are in a batch, or preview "early" '
      "in the editor.")],
)  # fmt: skip
def test_nodes_without_a_tap(
    state: StateDirectory, taps: RunTaps, plan: Plan, node: str, code: str, hint: str
) -> None:
    tap = Tap(state, node, 1)
    taps.poll()
    with pytest.raises(PlanError) as caught:
        tap.poll()
    assert (caught.value.code, caught.value.hint) == (code, hint)
    assert [taps.wanted(query) for query in plan.queries] == [{}, {}]


def test_a_listener_that_leaves_is_forgotten(
    plan: Plan, state: StateDirectory, taps: RunTaps, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = next(each for each in plan.queries if "out" in each.sinks)
    tap = Tap(state, "large", 2)
    taps.poll()
    (directory,) = (state.root / DIRECTORY).iterdir()
    os.utime(directory / REQUEST, (time.time() - 60,) * 2)
    monkeypatch.setattr(listener, "LIFE_SECONDS", 0.0)
    tap.poll()
    taps.poll()
    assert taps.wanted(query), "a listener gives signs of life"
    os.utime(directory / REQUEST, (time.time() - 60,) * 2)
    taps.poll()
    assert (taps.wanted(query), directory.exists()) == ({}, False)


def test_a_slow_listener_misses_batches(plan: Plan, state: StateDirectory, taps: RunTaps) -> None:
    query = next(each for each in plan.queries if "out" in each.sinks)
    tap = Tap(state, "large", 1)
    taps.poll()
    for number in range(MAX_ANSWERS + 4):
        taps.pass_rows(query, number, "large", ROWS)
    assert len(tap.poll()) == MAX_ANSWERS
    taps.pass_rows(query, 99, "large", ROWS)
    (answer,) = tap.poll()
    assert (answer["batch"], answer["skipped"]) == (99, 5)


def test_no_secrets_in_rows(plan: Plan, state: StateDirectory, taps: RunTaps) -> None:
    remember_secret("hunter-22")
    query = next(each for each in plan.queries if "out" in each.sinks)
    tap = Tap(state, "large", 3)
    taps.poll()
    taps.pass_rows(query, 1, "large", ROWS)
    assert "hunter" not in str(tap.poll())


def test_a_tap_requires_a_run(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateDirectory(plan.state)
    with pytest.raises(StateError, match="the pipeline does not run"):
        Tap(state, "large", 1)
    monkeypatch.setattr(listener, "LIFE_SECONDS", 0.0)
    with state.locked():
        tap = Tap(state, "large", 1)
    with pytest.raises(StateError, match="the pipeline does not run"):
        tap.poll()
