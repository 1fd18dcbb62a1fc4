"""Pipelines whose cases hold as given; those with state also over several batches and a restart.

Each case runs once. Given batches have a restart between them. Other rows are a batch each, with a
restart after the second one. Rows that are final at the end of the input have no state in between:
`test_final_rows.py` restarts their queries.
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
FINAL = {
    "rows of several sources and batches are aggregated once",
    "windows complete in the stream, other groups and sorted rows at its end",
}
"""Cases whose rows are final but for one query."""


def _run_mode(case: Case) -> RunMode:
    """Returns the division into batches, which matters where rows are kept between them."""
    nodes, given = case.plan.nodes, case.spec.given.values()
    names = {name for name in case.spec.expect if not _is_final(name, case)}
    kept = any(nodes[name].stateful for name in names | upstream(names, nodes))
    if not kept or case.spec.name in FINAL or sum(map(_count_rows, given)) < 2:
        return "as_given"
    if any(isinstance(each, Given) and len(each.batches or ()) > 1 for each in given):
        return "restarted"
    return "row_by_row"


def _is_final(name: str, case: Case) -> bool:
    """Returns whether only queries that have one batch, of all rows, read a node."""
    nodes = case.plan.nodes
    reading = [
        query
        for query in case.plan.queries
        for sink in query.sinks
        if name in {sink, *upstream([sink], nodes)}
    ]
    return bool(reading) and all(query.whole_input for query in reading)


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
