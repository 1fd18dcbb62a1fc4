"""Rows that are final at the end of the input: written once, also after a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import CommandLine
from penstock import app
from penstock.connectors import memory
from penstock.core.errors import StateError
from penstock.plan.model import Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.outcome import Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
runtime: {state: state}
sources:
  orders: {type: files, path: "in/*.csv", schema: "customer STRING, price INT", max_files: 1}
transforms:
  totals: {type: sql, sql: "SELECT customer, sum(price) AS total FROM orders GROUP BY customer"}
sinks:
  out: {type: files, path: out, format: json, from: totals}
  all: {type: blackhole, from: orders}
"""
TOTALS = [{"customer": "ann", "total": 5}, {"customer": "bob", "total": 4}]


class Place:
    def __init__(self, directory: Path, session: SparkSession) -> None:
        self.directory, self.session = directory, session
        (directory / "in").mkdir()
        self.add("customer,price\nann,3\nbob,4\n")
        self.add("customer,price\nann,2\n")
        (directory / "p.yaml").write_text(PIPELINE)
        (self.state,) = [app.plan(directory / "p.yaml").state]

    def add(self, text: str) -> None:
        folder = self.directory / "in"
        (folder / f"{len(list(folder.iterdir()))}.csv").write_text(text)

    def run(self, **options: Any) -> Outcome:
        plan = app.plan(self.directory / "p.yaml")
        run_options = app.RunOptions(**options)
        return app.run(plan, spark=self.session.newSession(), options=run_options)

    def rows(self) -> list[dict[str, Any]]:
        lines = [
            json.loads(line)
            for file in sorted((self.directory / "out").glob("*.jsonl"))
            for line in file.read_text().splitlines()
        ]
        return sorted(lines, key=lambda row: str(row["customer"]))


@pytest.fixture
def place(tmp_path: Path, penstock_spark: SparkSession) -> Place:
    return Place(tmp_path, penstock_spark)


def lose(place: Place, *, commits: bool) -> None:
    """Removes the last files of the state, as a crash leaves them out."""
    (place.state / "complete").unlink()
    if commits:
        for path in (place.state / "checkpoints" / "totals" / "commits").iterdir():
            path.unlink()


def test_final_rows_are_written_at_the_end_of_the_input_and_once(place: Place) -> None:
    """Later input does not add rows, also after a crash."""
    assert place.run(until="caught_up").ending == "caught_up"
    assert place.rows() == []
    assert place.run().ending == "complete"
    assert place.rows() == TOTALS
    status = json.loads((place.state / "status.json").read_text())
    assert status["nodes"]["orders"]["lag"] == 0
    for commits in (False, True):
        lose(place, commits=commits)
        place.add("customer,price\nann,100\n")
        assert place.run().ending == "complete"
        assert place.rows() == TOTALS


BESIDE_WINDOWS = """\
runtime: {state: state}
sources:
  orders:
    type: files
    path: "in/*.csv"
    schema: "customer STRING, price INT, at TIMESTAMP"
    watermark: {column: at, delay: 1 minute}
  vips: {type: files, path: "vips/*.csv", schema: "customer STRING"}
transforms:
  hourly: {type: sql, sql: "SELECT count(*) AS n FROM orders GROUP BY window(at, '1 hour')"}
  sorted: {type: sql, sql: "SELECT customer FROM vips ORDER BY customer"}
  counts: {type: sql, sql: "SELECT customer, count(*) AS n FROM orders GROUP BY customer"}
sinks:
  hourly_out: {type: memory, from: hourly, name: final hourly}
  sorted_out: {type: memory, from: sorted, name: final sorted}
  counts_out: {type: memory, from: counts, name: final counts}
"""


def test_final_rows_beside_windows(place: Place) -> None:
    """The row that closes the windows is in no final query."""
    (place.directory / "p.yaml").write_text(BESIDE_WINDOWS)
    for number, hour in enumerate((10, 10, 11)):
        row = f"ann,{number},2026-03-01 {hour}:05:00"
        (place.directory / "in" / f"{number}.csv").write_text(f"customer,price,at\n{row}\n")
    (place.directory / "vips").mkdir()
    (place.directory / "vips" / "0.csv").write_text("customer\nbob\nann\n")
    assert place.run().ending == "complete"
    rows = {name: memory.tables[f"final {name}"].to_pylist() for name in ("sorted", "counts")}
    assert rows == {
        "sorted": [{"customer": "ann"}, {"customer": "bob"}],
        "counts": [{"customer": "ann", "n": 3}],
    }
    assert sorted(memory.tables["final hourly"].column("n").to_pylist()) == [1, 2]


SEVERAL = """\
runtime: {state: state}
sources:
  orders: {type: files, path: "in/*.csv", schema: "customer STRING, price INT", max_files: 1}
  vips: {type: files, path: "vips/*.csv", schema: "customer STRING"}
transforms:
  totals:
    type: sql
    sql: >-
      SELECT coalesce(v.customer, 'none') AS customer, sum(price) AS total
      FROM orders LEFT JOIN vips v USING (customer) GROUP BY 1
  counts: {type: sql, sql: "SELECT count(*) AS n FROM vips"}
sinks:
  out: {type: files, path: out, format: json, from: totals}
  number: {type: files, path: number, format: json, from: counts}
"""


def test_final_rows_of_several_sources_are_written_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a failure between the write and the commit log, and after the loss of the log."""
    (place.directory / "p.yaml").write_text(SEVERAL)
    (place.directory / "vips").mkdir()
    (place.directory / "vips" / "0.csv").write_text("customer\nann\n")
    expected = [{"customer": "ann", "total": 5}, {"customer": "none", "total": 4}]

    def kill(_: BatchEvents, query: Query, __: int) -> None:
        if query.name == "totals":
            raise StateError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(BatchEvents, "on_end", kill)
        assert place.run().ending == "failed"
    for number, commits in enumerate((None, False, True), 1):
        if commits is not None:
            lose(place, commits=commits)
            place.add("customer,price\nann,100\n")
        (place.directory / "vips" / f"{number}.csv").write_text("customer\nbob\n")
        assert place.run().ending == "complete"
        assert place.rows() == expected


def test_a_global_aggregate_of_empty_input_has_its_row(place: Place) -> None:
    (place.directory / "p.yaml").write_text(SEVERAL)
    (place.directory / "vips").mkdir()
    (place.directory / "vips" / "0.csv").write_text("customer\n")
    for _ in range(2):
        place.run()
        (place.state / "complete").unlink()
    (file,) = (place.directory / "number").glob("*.jsonl")
    assert json.loads(file.read_text()) == {"n": 0}
    assert place.rows() == [{"customer": "none", "total": 9}]


WINDOWS = """\
CREATE TABLE clicks (user_name TEXT, at TIMESTAMP NOT NULL, WATERMARK FOR at)
WITH (connector = 'files', path = 'clicks/*.jsonl', format = 'json', 'order' = 'name',
  max_files = 1, watch = true);
CREATE TABLE busiest (user_name TEXT, clicks BIGINT, minutes BIGINT)
WITH (connector = 'files', path = 'busiest', format = 'debezium_json');
INSERT INTO busiest
SELECT user_name, max(n), count(*) FROM (
  SELECT tumble(INTERVAL '1 minute') AS minute, user_name, count(*) AS n
  FROM clicks GROUP BY minute, user_name)
GROUP BY user_name;
"""


def test_groups_of_windows_are_groups_of_complete_windows(cli: CommandLine, tmp_path: Path) -> None:
    """A window that is open, and a late row of a complete window, are not in the groups."""
    (tmp_path / "clicks").mkdir()
    (tmp_path / "p.sql").write_text(WINDOWS)
    for number, time in enumerate(("10:00:00", "10:10:00", "10:20:00", "10:00:05")):
        row = {"user_name": "ann", "at": f"2026-01-01T{time}Z"}
        (tmp_path / f"clicks/{number}.jsonl").write_text(json.dumps(row) + "\n")
        if number % 2:
            assert cli(tmp_path, "run", "p.sql", "--until-caught-up").returncode == 0
    parts = sorted((tmp_path / "busiest").glob("part-*"))
    changes = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert [(change["op"], *change["after"].values()) for change in changes] == [
        ("c", "ann", 1, 1),
        ("u", "ann", 1, 2),
    ]
