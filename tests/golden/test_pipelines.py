"""Pipelines whose cases hold as given; those with state also over several batches and a restart.

Each case runs once. Given batches have a restart between them. Other rows are a batch each, with a
restart after the second one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.plan.graph import upstream
from penstock.spec.case_models import Given, Rows
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
WHOLE = {"a count without a window is written at each change"}
"""Cases whose rows depend on the batches."""


def _run_mode(case: Case) -> RunMode:
    """Returns the division into batches, which matters where rows are kept between them."""
    nodes, given = case.plan.nodes, case.spec.given.values()
    names = set(case.spec.expect)
    if not any(nodes[name].stateful for name in names | upstream(names, nodes)):
        return "as_given"
    if any(isinstance(each, Given) and len(each.batches or ()) > 1 for each in given):
        return "restarted"
    if case.spec.name in WHOLE or sum(map(_count_rows, given)) < 2:
        return "as_given"
    return "row_by_row"


def _count_rows(given: Given | Rows) -> int:
    if not isinstance(given, Given):
        return len(given)
    return sum(map(len, [*(given.batches or ()), given.rows or (), given.payloads or ()]))


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_cases(path: Path, subtests: pytest.Subtests, penstock_spark: SparkSession) -> None:
    cases = load_cases(path)
    assert cases
    for case in cases:
        mode = _run_mode(case)
        with subtests.test(f"{case} ({mode})"):
            case.check(penstock_spark, mode)
