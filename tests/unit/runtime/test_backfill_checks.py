"""Sinks that cannot be backfilled, and the errors that say why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import PenstockError
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.plan.fingerprint import fingerprint
from penstock.plan.model import Plan
from penstock.runtime.backfills.backfill import prepare_backfill
from penstock.runtime.backfills.past_source import PastBatchesSource
from penstock.runtime.state.directory import StateDirectory

ORDERS = {"type": "memory", "rows": [{"id": 1}], "schema": "id LONG, at TIMESTAMP",
          "watermark": {"column": "at"}}  # fmt: skip
HOURLY = "SELECT window.start, count(*) AS n FROM orders GROUP BY window(at, '1 hour')"


def plan(directory: Path, sinks: dict[str, str], source: dict[str, Any] | None = None) -> Plan:
    document = {
        "name": "shop",
        "sources": {"orders": source or ORDERS},
        "transforms": {"hourly": {"type": "sql", "sql": HOURLY}},
        "sinks": {name: {"type": "memory", "from": above} for name, above in sinks.items()},
    }
    path = directory / "shop.yaml"
    path.write_text(json.dumps(document))
    return app.plan(path)


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """The state after a run of the sink `out`, which has read one row."""
    state = StateDirectory(tmp_path / "state")
    with state.locked():
        first = plan(tmp_path, {"out": "orders"})
        state.write("plan.json", fingerprint(first, state.key()))
        for log in ("offsets", "commits"):
            (state.checkpoint("orders") / log).mkdir(parents=True)
            (state.checkpoint("orders") / log / "0").write_text('v2\n{}\norders:{"rows": 1}\n')
    return state


def error(plan: Plan, state: StateDirectory, sink: str) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        prepare_backfill(plan, state, sink)
    assert not (state.root / "backfill").exists()
    return raised.value


def test_an_unknown_sink(state: StateDirectory, tmp_path: Path) -> None:
    unknown = error(plan(tmp_path, {"out": "orders", "copy": "orders"}), state, "cpoy")
    assert unknown.code == "unknown-node" and "copy" in str(unknown.hint)
    assert "is not a sink" in error(plan(tmp_path, {"out": "orders"}), state, "orders").message


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ({}, "are not recorded"),
        ({"batches": [[7, {"orders": {"rows": 9}}, 0]]}, "are not recorded"),
        ({"batches": [[0, {"orders": {"rows": 9}}, 0]], "closed": True}, "not all closed"),
    ],
    ids=["earlier-version", "one-batch", "closing"],
)
def test_a_sink_of_a_stateful_query_with_unknown_batches(
    state: StateDirectory, tmp_path: Path, batches: dict[str, Any], message: str
) -> None:
    (state.root / "checkpoints" / "orders").rename(state.root / "checkpoints" / "hourly")
    start = {"query": "hourly", "since": {"orders": {"rows": 9}}, **batches}
    state.write("sinks.json", {"n": start})
    stateful = error(plan(tmp_path, {"out": "orders", "n": "hourly"}), state, "n")
    assert stateful.code == "stateful-backfill" and message in stateful.message


def test_a_source_that_removes_records(state: StateDirectory, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = {"type": "files", "path": "in", "format": "json", "schema": "id LONG, at TIMESTAMP",
              "after_read": "delete"}  # fmt: skip
    removing = error(plan(tmp_path, {"out": "orders", "copy": "orders"}, source), state, "copy")
    assert removing.code == "read-twice"


def test_the_start_of_a_stateful_query(state: StateDirectory, tmp_path: Path) -> None:
    """The backfill begins where the query has started, at whatever offset its source starts now."""
    (state.root / "checkpoints" / "orders").rename(state.root / "checkpoints" / "hourly")
    StartOffsets(state.checkpoint("hourly")).record("orders", {"rows": 1})
    past = [
        [0, {"orders": {"rows": 2}}, 0],
        [1, {"orders": {"rows": 2}}, 0],
        [2, {"orders": {"rows": 9}}, 0],
    ]
    start = {"query": "hourly", "since": {"orders": {"rows": 9}}, "batches": past}
    state.write("sinks.json", {"n": start})
    sinks = plan(tmp_path, {"out": "orders", "n": "hourly"})
    source = prepare_backfill(sinks, state, "n").plan.nodes["orders"].source
    assert isinstance(source, PastBatchesSource)
    assert source.bounds == ({"rows": 1}, {"rows": 2}, {"rows": 2}, {"rows": 9})
    first, second, third = ({"batch": number} for number in (1, 2, 3))
    assert source.limit_batch(first, third) == second
    assert source.partitions(first, second) == []
    assert source.lag(first, third) == source.lag(second, third)


def test_a_sink_that_has_all_rows(state: StateDirectory, tmp_path: Path) -> None:
    complete = error(plan(tmp_path, {"out": "orders"}), state, "out")
    assert complete.code == "nothing-to-backfill"
    assert "has the rows of its query from the start" in complete.message


def test_a_query_without_a_committed_batch(state: StateDirectory, tmp_path: Path) -> None:
    (state.checkpoint("orders") / "commits" / "0").unlink()
    new = error(plan(tmp_path, {"out": "orders", "copy": "orders"}), state, "copy")
    assert "has not read anything" in new.message


def test_a_backfill_with_fresh(state: StateDirectory, tmp_path: Path) -> None:
    options = app.RunOptions(fresh=True, backfill="out")
    with pytest.raises(PenstockError, match="expected --fresh or --backfill"):
        app.run(plan(tmp_path, {"out": "orders"}), options=options)


def test_the_plan_of_a_backfill(state: StateDirectory, tmp_path: Path) -> None:
    sinks = {"out": "orders", "copy": "orders", "n": "hourly"}
    past = prepare_backfill(plan(tmp_path, sinks), state, "copy").plan
    assert set(past.nodes) == {"orders", "copy"}
    (query,) = past.queries
    assert query.sinks == ("copy",) and query.dead_letter_nodes == {"copy"}
    source = past.nodes["orders"].source
    assert source.is_bounded()
    assert source.initial_offset() == {"rows": 0}  # type: ignore[attr-defined]
    assert source.latest_offset({"rows": 0}) == {"rows": 1}  # type: ignore[attr-defined]
