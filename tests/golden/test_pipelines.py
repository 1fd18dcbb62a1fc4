"""Pipelines whose cases hold as given; those with state also row by row, with a restart.

A case that cannot hold row by row holds with a restart between its batches.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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


def _modes(case: Case) -> tuple[RunMode, ...]:
    """The division into batches matters where rows are kept between them, or order or scope do."""
    stateful = any(node.stateful for node in case.plan.nodes.values())
    named = any(name == case.spec.name for name, _ in OTHERWISE)
    if named:
        return ("restarted", "row_by_row")
    return ("as_given", "row_by_row") if stateful else ("as_given",)


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_cases(path: Path, subtests: pytest.Subtests, penstock_spark: SparkSession) -> None:
    cases = load_cases(path)
    assert cases
    for case in cases:
        for mode in _modes(case):
            holds = (case.spec.name, mode) not in OTHERWISE
            outcome = nullcontext() if holds else pytest.raises(AssertionError)
            with subtests.test(f"{case} ({mode})"), outcome:
                case.check(penstock_spark, mode)
