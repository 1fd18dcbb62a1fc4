"""Pipelines whose cases hold as given; those with state also row by row, with a restart.

A case that cannot hold row by row holds with a restart between its batches. Row by row only the
nodes with state, and the nodes downstream of them, are computed.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.plan.graph import upstream
from penstock.spec.case_models import Given, Rows, TestCase
from penstock.testing.case import Case, RunMode
from penstock.testing.suite import load_cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINES = sorted(
    path
    for path in (Path(__file__).parent / "pipelines").iterdir()
    if path.suffix in (".yaml", ".sql") and not path.stem.endswith(".test")
)
OTHERWISE = {
    ("each batch for itself", "row_by_row"): "the batches are what it is about",
    ("the order counts", "row_by_row"): "rows of different batches are not sorted",
    ("a count without a window is written at each change", "row_by_row"): ("it changes more often"),
}
"""What cannot hold, and why."""


@dataclass(frozen=True)
class PartWithState(Case):
    """The expected nodes of a case whose rows depend on state.

    Dead letters may come from any node, so that a case with dead letters is its own part.
    """

    @property
    def spec(self) -> TestCase:
        spec = super().spec
        if spec.dead_letters:
            return spec
        expect = {name: rows for name, rows in spec.expect.items() if self.has_state(name)}
        return spec.model_copy(update={"expect": expect})

    def has_state(self, name: str) -> bool:
        """Returns whether a node has state, or a node upstream."""
        nodes = self.plan.nodes
        return any(nodes[each].stateful for each in (name, *upstream([name], nodes)))


def _runs(case: Case) -> list[tuple[RunMode, Case]]:
    """The division into batches matters where rows are kept between them, or order or scope do."""
    if any(name == case.spec.name for name, _ in OTHERWISE):
        return [("restarted", case), ("row_by_row", case)]
    part = PartWithState(case.plan, case.index, case.pinned_schemas)
    if not any(map(part.has_state, case.spec.expect)):
        return [("as_given", case)]
    if sum(map(_count_rows, case.spec.given.values())) < 2:
        return [("as_given", case)]
    return [("as_given", case), ("row_by_row", part)]


def _count_rows(given: Given | Rows) -> int:
    if not isinstance(given, Given):
        return len(given)
    return sum(map(len, [*(given.batches or ()), given.rows or (), given.payloads or ()]))


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_cases(path: Path, subtests: pytest.Subtests, penstock_spark: SparkSession) -> None:
    cases = load_cases(path)
    assert cases
    for case in cases:
        for mode, part in _runs(case):
            holds = (case.spec.name, mode) not in OTHERWISE
            outcome = nullcontext() if holds else pytest.raises(AssertionError)
            with subtests.test(f"{case} ({mode})"), outcome:
                part.check(penstock_spark, mode)
