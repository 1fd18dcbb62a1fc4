"""Sinks and columns that an existing query gains: what a run says, and what it records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.plan.fingerprint import fingerprint
from penstock.plan.model import Plan
from penstock.runtime.backfills.sink_starts import find_starts, read_starts, write_starts
from penstock.runtime.state.compatibility import check_changes, find_new_columns
from penstock.runtime.state.directory import StateDirectory

ORDERS = {
    "type": "memory", "rows": [{"id": 1}], "schema": "id LONG, at TIMESTAMP",
    "watermark": {"column": "at"},
}  # fmt: skip
HOURLY = "SELECT window.start, count(*) AS n FROM orders GROUP BY window(at, '1 hour')"


def plan(directory: Path, *sinks: str, **options: Any) -> Plan:
    """A plan with sinks NAME of the source, or NAME:INPUT."""
    document = {
        "name": "shop",
        "sources": {"orders": ORDERS},
        "transforms": {"hourly": {"type": "sql", "sql": HOURLY}},
        "sinks": {
            name.partition(":")[0]: {
                "type": "memory", "from": name.partition(":")[2] or "orders", **options
            }
            for name in sinks
        },
    }  # fmt: skip
    path = directory / "shop.yaml"
    path.write_text(json.dumps(document))
    return app.plan(path)


def commit(state: StateDirectory, query: str, rows: int) -> None:
    """Writes the logs of a committed batch, as Spark writes them."""
    for log in ("offsets", "commits"):
        (state.checkpoint(query) / log).mkdir(parents=True, exist_ok=True)
        text = f'v2\n{{"batchWatermarkMs": 0}}\norders:{{"rows": {rows}}}\n'
        (state.checkpoint(query) / log / str(rows)).write_text(text)


def record(plan: Plan, state: StateDirectory, **columns: list[str]) -> None:
    """Records the plan as a run does."""
    write_starts(state, find_starts(plan, state))
    state.write("plan.json", {**fingerprint(plan, state.key()), "columns": columns})


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """The state after a run of the sinks `out` and `counts`, which have read one row."""
    state = StateDirectory(tmp_path / "state")
    with state.locked():
        record(plan(tmp_path, "out", "counts:hourly"), state, out=["id"], counts=["start", "n"])
        commit(state, "orders", 1)
        commit(state, "hourly", 1)
    return state


def notes(changed: Plan, state: StateDirectory) -> list[str]:
    return [str(change) for change in check_changes(changed, state)]


def test_a_new_sink_says_that_it_starts_with_the_next_batch(
    state: StateDirectory, tmp_path: Path
) -> None:
    (note,) = notes(plan(tmp_path, "out", "counts:hourly", "copy"), state)
    assert note.startswith('+ sink "copy": new in query "orders", starts with the next batch; ')
    assert note.endswith(f"penstock run {tmp_path / 'shop.yaml'} --backfill copy")


def test_a_new_sink_of_a_stateful_query_has_a_backfill(
    state: StateDirectory, tmp_path: Path
) -> None:
    (note,) = notes(plan(tmp_path, "out", "counts:hourly", "more:hourly"), state)
    assert note.endswith("--backfill more")
    start = find_starts(plan(tmp_path, "out", "counts:hourly", "more:hourly"), state)["more"]
    assert start.batches == [[1, {"orders": {"rows": 1}}, 0]]


def test_a_new_sink_of_a_query_without_rows_is_not_reported(
    state: StateDirectory, tmp_path: Path
) -> None:
    (state.checkpoint("orders") / "commits" / "1").unlink()
    changed = plan(tmp_path, "out", "counts:hourly", "copy")
    assert notes(changed, state) == []
    assert find_starts(changed, state) == {}


def test_the_start_of_a_sink_remains_when_its_query_continues(
    state: StateDirectory, tmp_path: Path
) -> None:
    changed = plan(tmp_path, "out", "counts:hourly", "copy")
    record(changed, state)
    commit(state, "orders", 5)
    record(changed, state)
    (start,) = read_starts(state).values()
    assert (start.query, start.since) == ("orders", {"orders": {"rows": 1}})
    assert not start.filled and not start.returned


def test_a_removed_sink_that_returns_is_marked(state: StateDirectory, tmp_path: Path) -> None:
    record(plan(tmp_path, "counts:hourly", "copy"), state)
    commit(state, "orders", 5)
    back = plan(tmp_path, "out", "counts:hourly", "copy")
    (note,) = notes(back, state)
    assert "rows since it was removed are not written" in note
    record(back, state)
    start = read_starts(state)["out"]
    assert start.returned and start.since == {"orders": {"rows": 5}}


def test_a_sink_that_moves_to_another_query_is_reported(
    state: StateDirectory, tmp_path: Path
) -> None:
    moved = notes(plan(tmp_path, "out:hourly", "counts:hourly"), state)
    (note,) = [note for note in moved if note.startswith('+ sink "out"')]
    assert 'new in query "hourly", starts with the next batch' in note


def test_new_columns_are_reported(state: StateDirectory, tmp_path: Path) -> None:
    columns = {"out": ["id", "tax", "net"], "counts": ["start", "n"]}
    same = plan(tmp_path, "out", "counts:hourly")
    (change,) = find_new_columns(same, columns, state)
    assert str(change).startswith('+ sink "out": new columns "tax", "net", in the rows of the next')
    assert change.reason.endswith("rows before are not written again")
    upserting = plan(tmp_path, "out", mode="upsert", primary_key=["id"])
    (change,) = find_new_columns(upserting, {"out": ["id", "tax"]}, state)
    assert change.reason.endswith("--backfill out")


def test_columns_of_an_earlier_version_are_unknown(state: StateDirectory, tmp_path: Path) -> None:
    same = plan(tmp_path, "out", "counts:hourly")
    state.write("plan.json", fingerprint(same, state.key()))
    assert find_new_columns(same, {"out": ["id", "tax"]}, state) == []
