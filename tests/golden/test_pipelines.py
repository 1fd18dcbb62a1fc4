"""Pipelines whose cases hold as given; those with state also row by row, with a restart.

A case that cannot hold row by row holds with a restart between its batches.
"""

from __future__ import annotations

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


def _parameters() -> list[object]:
    found: list[object] = []
    for path in PIPELINES:
        for case in load_cases(path):
            for mode in _modes(case):
                reason = OTHERWISE.get((case.spec.name, mode))
                marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
                name = f"{path.stem}: {case} ({mode})"
                found.append(pytest.param(case, mode, marks=marks, id=name))
    return found


@pytest.mark.parametrize(("case", "mode"), _parameters())
def test_pipeline(case: Case, mode: RunMode, penstock_spark: SparkSession) -> None:
    case.check(penstock_spark, mode)
