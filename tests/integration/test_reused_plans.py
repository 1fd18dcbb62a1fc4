"""Plans of batches: analyzed for the first batch, reused where this cannot change a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app
from penstock.engine.build import Builder
from penstock.engine.catalyst.executed_plan import ExecutedPlan, PhysicalRows
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BATCHES = 4
PIPELINE = """\
runtime: {{state: state}}
sources:
  numbers: {{type: files, path: "in/*.csv", schema: "n INT", max_files: 1}}
transforms:
  computed:
    type: sql
    scope: batch
    sql: {sql}
sinks:
  out: {{type: files, path: out, format: json, from: computed}}
"""


class Place:
    """A directory with two numbers in each of four files, one batch each.

    `builds` counts the batches whose frames are built, `unplanned` those that Spark does not plan.
    """

    def __init__(
        self, directory: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.directory, self.session = directory, session
        self.builds = self.unplanned = 0
        (directory / "in").mkdir()
        for batch in range(BATCHES):
            text = f"n\n{10 * batch + 1}\n{10 * batch + 2}\n"
            (directory / "in" / f"{batch}.csv").write_text(text)
        build = Builder.build_batch

        def count(*arguments: Any) -> Any:
            self.builds += 1
            return build(*arguments)

        monkeypatch.setattr(Builder, "build_batch", count)
        apply = ExecutedPlan.apply

        def count_unplanned(plan: ExecutedPlan, root: DataFrame) -> PhysicalRows | None:
            rows = apply(plan, root)
            self.unplanned += rows is not None
            return rows

        monkeypatch.setattr(ExecutedPlan, "apply", count_unplanned)

    def run(self, sql: str) -> list[dict[str, Any]]:
        (self.directory / "p.yaml").write_text(PIPELINE.format(sql=sql))
        plan = app.plan(self.directory / "p.yaml")
        app.run(plan, spark=self.session.newSession())
        lines = [
            json.loads(line)
            for file in (self.directory / "out").glob("*.jsonl")
            for line in file.read_text().splitlines()
        ]
        return sorted(lines, key=lambda row: int(row["n"]))

    def dead_letters(self) -> list[bytes]:
        state = StateDirectory(app.plan(self.directory / "p.yaml").state)
        return list(DeadLetters(state.dead_letters).read().column("payload").to_pylist())


@pytest.fixture
def place(tmp_path: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, penstock_spark, monkeypatch)


def test_plan_is_reused_for_the_rows_of_later_batches(place: Place) -> None:
    rows = place.run("SELECT n, n * 2 AS double FROM numbers WHERE n % 10 = 1")
    assert rows == [{"n": n, "double": 2 * n} for n in (1, 11, 21, 31)]
    assert (place.builds, place.unplanned) == (1, BATCHES - 1)


@pytest.mark.parametrize(
    "clock",
    ["current_timestamp()", "CAST('now' AS TIMESTAMP)", "CAST(concat('n', 'ow') AS TIMESTAMP)"],
    ids=["function", "word", "expression"],
)
def test_clock_of_a_reused_plan_is_that_of_the_batch(place: Place, clock: str) -> None:
    rows = place.run(f"SELECT n, {clock} AS at FROM numbers")
    assert (place.builds, place.unplanned) == (1, 0)
    assert len({row["at"] for row in rows}) == BATCHES


def test_batch_with_a_shuffle_is_planned(place: Place) -> None:
    rows = place.run("SELECT DISTINCT n DIV 10 AS n FROM numbers")
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    assert (place.builds, place.unplanned) == (1, 0)


@pytest.mark.parametrize("function", ["rand()", "uuid()"])
def test_plan_with_a_seed_is_not_reused(place: Place, function: str) -> None:
    rows = place.run(f"SELECT n, {function} AS value FROM numbers")
    assert len({row["value"] for row in rows}) == 2 * BATCHES
    assert place.builds == BATCHES


def test_plan_that_reads_the_batch_twice_is_not_reused(place: Place) -> None:
    rows = place.run("SELECT a.n FROM numbers a JOIN numbers b ON a.n = b.n + 1")
    assert rows == [{"n": n} for n in (2, 12, 22, 32)]
    assert place.builds == BATCHES


def test_row_that_fails_in_a_reused_plan_is_a_dead_letter(place: Place) -> None:
    rows = place.run("SELECT n, 10 / (n - 12) AS ratio FROM numbers")
    assert [row["n"] for row in rows] == [1, 2, 11, 21, 22, 31, 32]
    assert place.unplanned == BATCHES - 1
    assert [json.loads(payload) for payload in place.dead_letters()] == [{"n": 12}]
