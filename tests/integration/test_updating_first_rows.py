"""Updating queries that keep the first rows of each key: rows of a batch that need no state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import scala_items
from penstock.engine.updating.batch import UpdatingBatch
from penstock.engine.updating.operator import AffectedFrame, Input
from penstock.engine.updating.plan import IncrementalPlan
from penstock.engine.updating.rows import WEIGHT
from penstock.engine.updating.template import leaves_of, rdd_of, table_plan
from penstock.engine.updating.versions import OperatorStateDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.model import Plan

pytestmark = pytest.mark.spark

PIPELINE = """\
name: first
sources: {rows: {type: generate, fields: {id: sequence}}}
sinks: {out: {type: blackhole, from: rows}}
"""
PLACED = """
    SELECT k, name, place
    FROM (SELECT *, {function}() OVER (PARTITION BY k ORDER BY n {order}) AS place FROM rows)
    WHERE {condition}
"""
ROWS = [(key, n, f"{key}{n}") for key in "ab" for n in range(4)]
Row = tuple[Any, ...]


@dataclass
class Counting(UpdatingBatch):
    """A batch that counts the changes that reach the state."""

    counts: list[int] = field(default_factory=list)

    def affected_rows(
        self, operator: str, inputs: Sequence[Input], *, replaces: bool = False, joins: bool = False
    ) -> AffectedFrame:
        self.counts += [self._catalyst.frame(each.changes.plan).count() for each in inputs]
        return super().affected_rows(operator, inputs, replaces=replaces, joins=joins)


def shuffles(frame: DataFrame) -> int:
    """Returns the number of shuffles in the plan of a frame."""
    java_frame: Any = frame._jdf
    return str(java_frame.queryExecution().executedPlan().toString()).count("Exchange ")


@dataclass
class Query:
    """A query that is computed batch by batch: its result, and the changes of its state."""

    session: SparkSession
    plan: Plan
    directory: Path
    sql: str
    inserts: bool = True
    result: Counter[Row] = field(default_factory=Counter)
    counts: list[int] = field(default_factory=list)
    shuffles: list[int] = field(default_factory=list)
    adds_only: list[bool] = field(default_factory=list)
    batch: int = 0

    def apply(self, rows: Sequence[Row]) -> None:
        columns = f"k string, n int, name string, {WEIGHT} int"
        changes = [row if len(row) == 4 else (*row, 1) for row in rows]
        weighted = self.session.createDataFrame(changes, columns).coalesce(1)
        leaf = leaves_of({"rows": weighted}, self.session)["rows"]
        leaf.createOrReplaceTempView("rows")
        template = table_plan(self.session.sql(self.sql))
        state = OperatorStateDirectory(self.directory, 4)
        before = state.before(self.batch)
        batch = Counting(self.plan, self.session, state, self.batch, 0, before)
        catalyst, id_ = Catalyst(self.session), rdd_of(leaf)
        only = frozenset([id_] if self.inserts else [])
        changed = IncrementalPlan(catalyst, {id_: weighted}, batch, "q", only).changes(template)
        output = [*scala_items(template.output()), changed.weight]
        frame = catalyst.frame(catalyst.project(changed.plan, output))
        self.shuffles.append(shuffles(frame))
        self.adds_only.append(changed.adds_only)
        for *values, weight in frame.collect():
            self.result[tuple(values)] += weight
        batch.commit()
        batch.release()
        self.counts += batch.counts
        self.batch += 1

    def rows(self) -> list[Row]:
        return sorted(self.result.elements())


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    return app.plan(tmp_path / "pipeline.yaml")


@pytest.fixture
def session(penstock_spark: SparkSession) -> SparkSession:
    session = penstock_spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("place <= 2", 4),
        ("place < 2", 2),
        ("3 >= place", 6),
        ("place = 1", 2),
        ("place <= 3 AND place <= 1 AND name <> 'a0'", 2),
        ("place > 1", 8),
        ("place <= 1 OR name = 'a3'", 8),
        ("place <= 1000", 8),
        ("place = 0", 8),
    ],
)
def test_only_the_first_rows_of_a_batch_reach_the_state(
    condition: str, kept: int, tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    sql = PLACED.format(function="row_number", order="DESC", condition=condition)
    query = Query(session, plan, tmp_path / "state", sql)
    query.apply(ROWS)
    assert query.counts == [kept]
    session.createDataFrame(ROWS, "k string, n int, name string").createOrReplaceTempView("rows")
    assert query.rows() == sorted(map(tuple, session.sql(sql).collect()))


@pytest.mark.parametrize(
    ("function", "inserts"), [("rank", True), ("row_number", False)], ids=["rank", "deletes"]
)
def test_all_rows_reach_the_state(
    function: str, inserts: bool, tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    sql = PLACED.format(function=function, order="ASC", condition="place <= 1")
    query = Query(session, plan, tmp_path / "state", sql, inserts)
    query.apply(ROWS)
    assert query.counts == [8]


def test_a_row_takes_the_place_of_a_deleted_one(
    tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    sql = PLACED.format(function="row_number", order="ASC", condition="place <= 1")
    query = Query(session, plan, tmp_path / "state", sql, inserts=False)
    query.apply(ROWS)
    query.apply([("a", 0, "a0", -1)])
    assert query.rows() == [("a", "a1", 1), ("b", "b0", 1)]


@pytest.mark.parametrize("order", ["ASC NULLS LAST", "DESC NULLS FIRST"])
def test_of_equal_rows_the_first_to_arrive_is_first(
    order: str, tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    sql = PLACED.format(function="row_number", order=order, condition="place <= 2")
    query = Query(session, plan, tmp_path / "state", sql)
    query.apply([("a", 1, name) for name in "zyxw"])
    assert query.rows() == [("a", "y", 2), ("a", "z", 1)]
    query.apply([("a", 1, "v"), ("a", None, "n")])
    first = [("a", "y", 2), ("a", "z", 1)] if "LAST" in order else [("a", "n", 1), ("a", "z", 2)]
    assert query.rows() == first
