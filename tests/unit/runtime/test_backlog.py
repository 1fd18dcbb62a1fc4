"""How much is waiting when a run begins, and what that means for Java's compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import Transient
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.plan.rewrite import replace_sources
from penstock.runtime import backlog
from penstock.runtime.backlog import StalledBacklog, count_backlog, expected_length
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Config, Offset, ReplayableSource

PIPELINE = """
sources:
  a: {type: generate, fields: {id: sequence}, rows: 100, rate: 1}
  b: {type: generate, fields: {id: sequence}, rows: 30}
  table: {type: generate, fields: {id: sequence}, rows: 5000, static: true}
  files: {type: files, path: here/*.json, schema: id BIGINT}
transforms:
  joined: {type: sql, sql: SELECT a.id FROM a JOIN table USING (id)}
sinks:
  one: {type: blackhole, from: joined}
  two: {type: blackhole, from: b}
  three: {type: blackhole, from: files}
"""


class Down(ReplayableSource[Config]):
    """A system that cannot be reached."""

    def initial_offset(self) -> Offset:
        raise Transient("it is down")

    latest_offset = partitions = read = initial_offset  # type: ignore[assignment]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.json").write_text('{"id": 1}\n')
    (tmp_path / "p.yaml").write_text(PIPELINE)
    return app.plan(tmp_path / "p.yaml")


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def test_records_of_streams_count(plan: Plan, state: StateDirectory) -> None:
    assert count_backlog(plan, state) == 130


def query_of(plan: Plan, source: str) -> Query:
    return next(query for query in plan.queries if source in query.stream_nodes)


def plan_batch(state: StateDirectory, query: Query, offset: str, *logs: str) -> None:
    """Writes a batch up to an offset into logs of Spark."""
    for log in logs:
        path = state.checkpoint(query.name) / log / "3"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"v2\n{{}}\n{offset}" if log == "offsets" else "v1")


B_AT_10 = 'b:{"rows": 10, "row": 0, "time": 0}'


def test_committed_records_do_not_count(plan: Plan, state: StateDirectory) -> None:
    plan_batch(state, query_of(plan, "b"), B_AT_10, "offsets", "commits")
    assert count_backlog(plan, state) == 120


def test_an_unreachable_source_counts_nothing(plan: Plan, state: StateDirectory) -> None:
    assert count_backlog(replace_sources(plan, {"a": Down(Config())}), state) == 30


def test_counting_does_not_change_sources(plan: Plan, state: StateDirectory) -> None:
    before = {node.name: dict(vars(node.source)) for node in plan.of("source")}
    count_backlog(plan, state)
    assert {node.name: dict(vars(node.source)) for node in plan.of("source")} == before


def test_records_after_the_batch_of_a_stalled_query_count(
    plan: Plan, state: StateDirectory
) -> None:
    plan = replace_sources(plan, {"a": Down(Config())})
    metrics = Metrics()
    for name in ("a", "b"):
        metrics.flow(name, "source", "generate").measure("earlier", 4, "records")
        metrics.flows[name].pending = 10
    backlog = StalledBacklog(plan, state, metrics)
    plan_batch(state, query_of(plan, "a"), 'a:{"rows": 1}', "offsets")
    plan_batch(state, query_of(plan, "b"), B_AT_10, "offsets")
    backlog.count([])
    assert metrics.flows["b"].lag == 14
    backlog.count([query_of(plan, name) for name in ("a", "b")])
    backlog.close(timeout=30)
    assert metrics.flows["b"].lag == 20 + 10
    assert metrics.flows["a"].lag == 14


@pytest.mark.parametrize(
    ("until", "many", "length"),
    [("caught_up", 130, "minutes"), ("caught_up", 131, "seconds"), ("auto", 130, "endless")],
)
def test_how_long_a_run_is_going_to_be(
    plan: Plan, state: StateDirectory, monkeypatch: pytest.MonkeyPatch,
    until: Any, many: int, length: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(backlog, "LARGE_BACKLOG", many)
    monkeypatch.setattr(Plan, "bounded", False)
    assert expected_length(plan, state, until) == length


@pytest.mark.parametrize(("many", "length"), [(130, "minutes"), (131, "seconds")])
def test_fewer_records_with_state_take_minutes(
    plan: Plan, state: StateDirectory, monkeypatch: pytest.MonkeyPatch, many: int, length: str
) -> None:
    nodes = {name: replace(node, stateful=True) for name, node in plan.nodes.items()}
    monkeypatch.setattr(backlog, "LARGE_STATEFUL_BACKLOG", many)
    monkeypatch.setattr(Plan, "bounded", False)
    assert expected_length(replace(plan, nodes=nodes), state, "caught_up") == length
