"""Runs with the files sink: several states and one output, moved projects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import app

pytestmark = pytest.mark.spark

PIPELINE = """\
name: orders
sources:
  orders: {type: files, path: "in/*.jsonl", schema: id LONG, watch: WATCH}
sinks:
  out: {type: files, from: orders, path: out, roll: {max_size: 1 MB}}
runtime: {state: STATE}
"""


def write_pipeline(root: Path, state: str, watch: str = "false") -> Path:
    file = root / f"{state}.yaml"
    file.write_text(PIPELINE.replace("STATE", state).replace("WATCH", watch))
    return file


def put(root: Path, name: str, *ids: int) -> None:
    (root / "in").mkdir(exist_ok=True)
    (root / "in" / name).write_text("".join(f'{{"id": {id_}}}\n' for id_ in ids))


def visible_ids(root: Path) -> list[int]:
    texts = [path.read_text() for path in (root / "out").glob("*.jsonl")]
    return sorted(json.loads(line)["id"] for text in texts for line in text.splitlines())


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "the condition did not hold within 120 s"
        time.sleep(0.05)


def test_two_states_write_to_one_directory(tmp_path: Path, penstock_spark: SparkSession) -> None:
    put(tmp_path, "a.jsonl", 1, 2)
    watching = app.start(
        write_pipeline(tmp_path, "one", watch="true"), spark=penstock_spark.newSession()
    )
    wait_until(lambda: any('"staged": [{' in text for text in ledgers(tmp_path)))
    beside = app.run(write_pipeline(tmp_path, "two"), spark=penstock_spark.newSession())
    assert beside.ending == "complete"
    assert visible_ids(tmp_path) == [1, 2]
    watching.stop()
    watching.wait()
    assert visible_ids(tmp_path) == [1, 1, 2, 2]


def ledgers(root: Path) -> list[str]:
    return [path.read_text() for path in (root / "out").rglob("ledger.json")]


MOVED = """\
name: orders
sources:
  orders:
    type: files
    path: in/*.jsonl
    schema: id LONG, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
transforms:
  copies: {type: sql, sql: SELECT id FROM orders}
  counts:
    type: sql
    sql: SELECT window.start AS id, count(*) AS n FROM orders GROUP BY window(at, '1 hour')
sinks:
  out: {type: files, from: copies, path: out}
  counted: {type: files, from: counts, path: counted}
"""


def run_to_the_end(root: Path, spark: SparkSession) -> list[str]:
    """Runs the pipeline of a project until it is caught up. Returns the notes for the user."""
    notes: list[str] = []
    options = app.RunOptions(until="caught_up", on_note=notes.append)
    outcome = app.run(root / "pipeline.yaml", spark=spark.newSession(), options=options)
    assert outcome.ending == "caught_up", outcome.errors
    return notes


def put_order(root: Path, id_: int, hour: int) -> None:
    (root / "in").mkdir(parents=True, exist_ok=True)
    row = {"id": id_, "at": f"2026-01-01T{hour:02}:00:00Z"}
    (root / "in" / f"{id_}.jsonl").write_text(json.dumps(row) + "\n")


@pytest.mark.parametrize("by_link", [False, True], ids=["moved", "symbolic link"])
def test_a_moved_project_resumes(
    tmp_path: Path, penstock_spark: SparkSession, by_link: bool
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    put_order(before, 1, 0)
    (before / "pipeline.yaml").write_text(MOVED)
    run_to_the_end(before, penstock_spark)
    if by_link:
        after.symlink_to(before)
    else:
        before.rename(after)
    put_order(after, 2, 0)
    assert run_to_the_end(after, penstock_spark) == []
    assert visible_ids(after) == [1, 2]
    put_order(after, 3, 5)
    put_order(after, 4, 6)
    run_to_the_end(after, penstock_spark)
    counts = [path.read_text() for path in sorted((after / "counted").glob("*.jsonl"))]
    assert json.loads(counts[0].splitlines()[0])["n"] == 2
