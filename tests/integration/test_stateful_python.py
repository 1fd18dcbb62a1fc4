"""Python functions with state by key across batches and runs, in Spark."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.testing.stateful import StatefulHarness

CODE = """
from datetime import timedelta

from penstock import stateful


@stateful(key="user", time="at", ttl="50s")
class Visits:
    def process(self, row, state):
        if row["n"] == 13:
            raise ValueError("13")
        state.value = (state.value or 0) + row["n"]
        state.set_timer(state.time + timedelta(seconds=10))

    def on_timer(self, name, state):
        yield {"user": state.key["user"], "n": state.value, "until": state.time}
        if state.value % 2:
            state.clear()


def count(batch, state):
    state.value = (state.value or 0) + batch.num_rows
    return [{"user": state.key["user"], "n": state.value}]
"""
PIPELINE = """
name: visits
sources:
  clicks:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    format: json
    schema: user STRING, n INT, at TIMESTAMP
    watermark: {column: at, delay: 0s}
transforms:
  visits:
    type: python
    from: clicks
    function: visits:Visits
    per: row
    schema: user STRING, n INT, until TIMESTAMP
  counts:
    type: python
    from: clicks
    function: visits:count
    state: {key: [user]}
    schema: user STRING, n INT
sinks:
  out: {type: files, from: visits, path: out, format: json}
  all: {type: files, from: counts, path: all, format: json}
"""
START = datetime(2024, 5, 1, tzinfo=UTC)


def read(directory: Path) -> list[dict[str, Any]]:
    lines = [line for path in directory.glob("*.json*") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_runs_and_batches_agree_with_the_harness(cli: Any, tmp_path: Path) -> None:
    """The run is stopped between two files. The harness gets all rows as one batch."""
    chance = random.Random(3)
    rows, time = [], START
    for _ in range(60):
        time += timedelta(seconds=chance.randint(1, 8))
        rows.append({"user": chance.choice("abcd"), "n": chance.choice([1, 2, 13]), "at": time})
    (tmp_path / "visits.yaml").write_text(PIPELINE)
    (tmp_path / "visits.py").write_text(CODE)
    scope: dict[str, Any] = {}
    exec(CODE, scope)
    harness = StatefulHarness(
        scope["Visits"], key="user", time="at", ttl="50s", per="row",
        schema="user STRING, n INT, until TIMESTAMP",
    )  # fmt: skip
    expected = [*harness.feed(rows), *harness.advance(START + timedelta(days=9))]
    (tmp_path / "in").mkdir()
    for number, (first, last) in enumerate([(0, 20), (20, 40), (40, 60)]):
        lines = [json.dumps({**row, "at": row["at"].isoformat()}) for row in rows[first:last]]
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(lines))
        if number == 1:
            result = cli(tmp_path, "run", "visits.yaml", "--until-caught-up")
            assert result.returncode == 0, result.stderr
    result = cli(tmp_path, "run", "visits.yaml")
    assert result.returncode == 0, result.stderr
    found = [(row["user"], row["n"], row["until"][:19]) for row in read(tmp_path / "out")]
    due = [(row["user"], row["n"], row["until"].isoformat()[:19]) for row in expected]
    assert len(due) > 15 and sorted(found) == sorted(due)
    dead = json.loads(cli(tmp_path, "dead", "list", "visits.yaml", "--json").stdout)
    assert dead["total"] == len(harness.errors) > 5
    assert "ValueError: 13" in str(dead["letters"][0])
    counts = {
        user: max(row["n"] for row in read(tmp_path / "all") if row["user"] == user)
        for user in "abcd"
    }
    assert counts == {user: sum(row["user"] == user for row in rows) for user in "abcd"}
