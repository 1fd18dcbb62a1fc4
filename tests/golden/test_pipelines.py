"""Pipelines whose cases hold as given, with a restart in the middle, and row by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from penstock.testing.case import Case, Way
from penstock.testing.suite import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINES = sorted((Path(__file__).parent / "pipelines").glob("*.yaml"))
OTHERWISE = {
    ("each batch for itself", "row_by_row"): "the batches are what it is about",
    ("the order counts", "row_by_row"): "rows of different batches are not sorted",
    ("a count without a window is told each time it changes", "row_by_row"): (
        "it changes more often"
    ),
}
"""What cannot hold, and why."""


def _every_way() -> list[object]:
    found: list[object] = []
    for path in PIPELINES:
        for case in cases(path):
            for way in get_args(Way):
                reason = OTHERWISE.get((case.spec.name, way))
                marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
                name = f"{path.stem}: {case} ({way})"
                found.append(pytest.param(case, way, marks=marks, id=name))
    return found


@pytest.mark.parametrize(("case", "way"), _every_way())
def test_pipeline(case: Case, way: Way, penstock_spark: SparkSession) -> None:
    case.check(penstock_spark, way)
