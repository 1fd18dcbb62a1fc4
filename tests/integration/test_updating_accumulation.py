"""Aggregates of updating queries that accumulate, batch by batch, against Spark over all rows."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.connectors import memory
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, scala_items
from penstock.engine.updating.accumulation import Accumulation
from penstock.engine.updating.batch import UpdatingBatch
from penstock.engine.updating.changelog import to_changes
from penstock.engine.updating.checkpoint import checkpoint, compute_all
from penstock.engine.updating.plan import IncrementalPlan
from penstock.engine.updating.rows import WEIGHT
from penstock.engine.updating.template import leaves_of, rdd_of, table_plan
from penstock.engine.updating.versions import OperatorStateDirectory
from penstock.engine.updating.weighted import Weighted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.model import Plan

pytestmark = pytest.mark.spark

COLUMNS = (
    "k string, g int, i int NOT NULL, b bigint, d decimal(20,3), small decimal(7,2), f double, "
    "s string, t date, flag boolean"
)
PIPELINE = """\
name: accumulated
sources: {rows: {type: generate, fields: {id: sequence}}}
sinks: {out: {type: blackhole, from: rows}}
"""
RUN = """\
name: nested
runtime: {state: state}
sources:
  rows:
    {type: files, path: in, watch: true, max_files: 1, format: json,
      schema: "k STRING, g INT, b INT"}
transforms:
  groups:
    type: sql
    sql: SELECT k, max(m) AS m FROM (SELECT k, g, max(b) AS m FROM rows GROUP BY k, g) GROUP BY k
sinks: {out: {type: blackhole, from: groups}}
"""
Row = tuple[Any, ...]

TAKEN_BACK = """
    SELECT k, g, count(*) AS n, count(b) AS nb, count(b, d) AS nbd, sum(i) AS ti, sum(b) AS tb,
        sum(d) AS td, sum(small) AS ts, avg(i) AS ai, avg(b) AS ab, avg(d) AS ad,
        avg(small) AS sa, sum(b) FILTER (WHERE i > 5) AS few, count(*) FILTER (WHERE flag) AS nf,
        count_if(i > 3) AS ni, round(sum(d) / count(*), 2) + max(1) AS ratio
    FROM rows GROUP BY k, g
"""
INSERTED = """
    SELECT k, min(s) AS s1, max(s) AS s2, min(f) AS f1, max(f) AS f2, sum(f) AS tf, avg(f) AS af,
        min(t) AS t1, max(d) AS d2, bool_and(flag) AS every, bool_or(flag) AS some,
        max(f) FILTER (WHERE g = 1) AS one, min(struct(i).i) AS i1, avg(d) AS ad
    FROM rows GROUP BY k
"""
GLOBAL = "SELECT count(*) AS n, sum(b) AS tb, avg(d) AS ad FROM rows WHERE i > 2"
NESTED = """
    SELECT n, count(*) AS keys, sum(total) AS total
    FROM (SELECT k, count(*) AS n, sum(b) AS total FROM rows GROUP BY k HAVING count(*) > 1)
    GROUP BY n
"""
DISTINCT = "SELECT DISTINCT g, flag FROM rows"


@dataclass
class Updates:
    """A query that is computed batch by batch, and all rows of its input."""

    session: SparkSession
    plan: Plan
    sql: str
    directory: Path
    rows: Counter[Row] = field(default_factory=Counter)
    result: Counter[str] = field(default_factory=Counter)
    batch: int = 0
    stored: int = 0

    def apply(self, added: Sequence[Row], removed: Sequence[Row] = (), *, inserts: bool) -> int:
        """Computes a batch, and compares the result. Returns the number of changes."""
        changes = [(*row, 1) for row in added] + [(*row, -1) for row in removed]
        self.rows.update(added)
        self.rows.subtract(removed)
        weighted = self.session.createDataFrame(changes, f"{COLUMNS}, {WEIGHT} int")
        leaf, plan = template(self.session, self.sql, weighted)
        state = OperatorStateDirectory(self.directory, 4)
        batch = UpdatingBatch(
            self.plan, self.session, state, self.batch, 0, state.before(self.batch)
        )
        catalyst, only = Catalyst(self.session), frozenset([leaf] if inserts else [])
        changed = IncrementalPlan(catalyst, {leaf: weighted}, batch, "q", only).changes(plan)
        output = scala_items(plan.output())
        frame = catalyst.frame(catalyst.project(changed.plan, [*output, changed.weight]))
        found = frame.collect()
        self.stored = batch.commit().rows
        batch.release()
        self.batch += 1
        for *values, weight in found:
            self.result[repr(values)] += weight
        self._compare(frame)
        return len(found)

    def _compare(self, frame: DataFrame) -> None:
        stored = self.session.createDataFrame(list(self.rows.elements()), COLUMNS)
        stored.createOrReplaceTempView("rows")
        expected = self.session.sql(self.sql)
        types = [field.dataType for field in expected.schema]
        assert [field.dataType for field in frame.schema][:-1] == types
        rows = Counter(repr(list(row)) for row in expected.collect())
        assert {row: count for row, count in self.result.items() if count} == rows

    def restart(self, directory: Path) -> None:
        """Continues with a copy of the files of the state, which no process has in memory."""
        shutil.copytree(self.directory, directory)
        self.directory = directory

    def columns(self) -> set[str]:
        """Returns the columns of the files of the state."""
        files = self.directory.rglob("*.arrow")
        return {name for file in files for name in pa.ipc.open_file(file).schema.names}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """The plan of a pipeline without a limit of the age of state."""
    return plan_with(tmp_path, "{}")


def plan_with(directory: Path, runtime: str) -> Plan:
    path = directory / "pipeline.yaml"
    path.write_text(PIPELINE + f"runtime: {runtime}\n")
    return app.plan(path)


@pytest.fixture
def session(penstock_spark: SparkSession) -> SparkSession:
    """A session with few partitions."""
    session = penstock_spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    return session


def template(session: SparkSession, sql: str, weighted: DataFrame) -> tuple[int, Any]:
    """Returns the ID of the leaf of a query over `rows`, and the optimized plan."""
    leaf = leaves_of({"rows": weighted}, session)["rows"]
    leaf.createOrReplaceTempView("rows")
    return rdd_of(leaf), table_plan(session.sql(sql))


def made_up(source: random.Random, count: int) -> list[Row]:
    """Returns rows with nulls and extreme values."""
    return [
        (
            source.choice(["u", "v", None]), source.choice([1, 2, None]), source.randint(0, 9),
            source.choice([None, -7, 0, 2**40, 5]),
            source.choice([None, Decimal("99999999999999999.999"), Decimal("-1.005")]),
            source.choice([None, Decimal("99999.99"), Decimal("0.01")]),
            source.choice([None, 0.25, -8.5, 3.0, float("nan"), float("inf")]),
            source.choice([None, "", "ä", "z", "zz"]),
            source.choice([None, date(1969, 12, 31), date(2026, 2, 28)]),
            source.choice([None, True, False]),
        )
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql", [TAKEN_BACK, GLOBAL, NESTED, DISTINCT], ids=["grouped", "global", "nested", "distinct"]
)
def test_rows_are_added_and_taken_back(
    tmp_path: Path, session: SparkSession, plan: Plan, sql: str
) -> None:
    source = random.Random(5)
    updates = Updates(session, plan, sql, tmp_path / "one")
    first, second = made_up(source, 14), made_up(source, 10)
    updates.apply(first, inserts=False)
    updates.apply(second, first[::2], inserts=False)
    updates.restart(tmp_path / "two")
    updates.apply([], [*first[1::2], *second], inserts=False)
    assert not +updates.rows


def test_rows_are_inserted(tmp_path: Path, session: SparkSession, plan: Plan) -> None:
    source = random.Random(6)
    updates = Updates(session, plan, INSERTED, tmp_path / "one")
    updates.apply(made_up(source, 3), inserts=True)
    updates.restart(tmp_path / "two")
    updates.apply(made_up(source, 9), inserts=True)


def test_partial_rows_are_stored_and_unchanged_groups_are_not_returned(
    tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    updates = Updates(
        session,
        plan,
        "SELECT g + 1 AS h, max(i) AS top FROM rows GROUP BY g + 1",
        tmp_path / "state",
    )
    blank = (None,) * 7
    assert updates.apply([("u", 1, 5, *blank), ("u", 2, 5, *blank)], inserts=True) == 2
    assert updates.apply([("u", 1, 4, *blank), ("u", 2, 6, *blank)], inserts=True) == 2
    assert "_penstock_partial_0" in updates.columns()
    assert "_penstock_side" not in updates.columns()


def test_rows_that_expire_do_not_accumulate(tmp_path: Path, session: SparkSession) -> None:
    plan = plan_with(tmp_path, "{updating_ttl: 1 day}")
    sql = "SELECT g + 1 AS h, count(*) AS n FROM rows GROUP BY g + 1"
    updates = Updates(session, plan, sql, tmp_path / "state")
    updates.apply([("u", 1, 5, *(None,) * 7)], inserts=True)
    assert "_penstock_side" in updates.columns()


def test_a_sum_that_overflows_is_an_error(
    tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    updates = Updates(
        session,
        plan,
        "SELECT g + 1 AS h, sum(b) AS total FROM rows GROUP BY g + 1",
        tmp_path / "state",
    )
    blank = (None,) * 6
    most = ("u", 1, 0, 2**63 - 1, *blank)
    updates.apply([most], inserts=False)
    with pytest.raises(Exception, match="overflows BIGINT"):
        updates.apply([("u", 1, 0, 1, *blank)], inserts=False)


def test_rows_with_nulls_in_different_columns_are_different(session: SparkSession) -> None:
    rows = session.createDataFrame(
        [(None, 1, 1), (1, None, -1)], f"a int, b int, {WEIGHT} int"
    )  # fmt: skip
    changes = to_changes(rows, [], "op").collect()
    assert sorted(map(tuple, changes), key=str) == [(1, None, "d"), (None, 1, "i")]


@pytest.mark.parametrize(
    ("inserts", "functions", "accumulates"),
    [
        (False, "count(*), sum(i), avg(d)", True),
        (True, "count(*), sum(f), avg(f), max(s), bool_and(flag)", True),
        (False, "max(i)", False),
        (False, "sum(f)", False),
        (True, "count(DISTINCT s)", False),
        (True, "first(s)", False),
        (True, "try_sum(i)", False),
        (True, "sum(cast(d AS decimal(38,3)))", False),
        (True, "max(array(i))", False),
        (True, "count(*), collect_list(i)", False),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)  # fmt: skip
def test_which_aggregates_accumulate(
    session: SparkSession, inserts: bool, functions: str, accumulates: bool
) -> None:
    weighted = session.createDataFrame([], f"{COLUMNS}, {WEIGHT} int")
    _, plan = template(session, f"SELECT {functions} FROM rows GROUP BY k", weighted)
    while class_name(plan) != "Aggregate":
        plan = plan.child()
    input_ = Weighted(plan.child(), scala_items(plan.child().output())[0], inserts)
    assert (Accumulation.of(Catalyst(session), plan, input_) is not None) == accumulates


def test_nested_and_collated_keys(tmp_path: Path, session: SparkSession, plan: Plan) -> None:
    sql = (
        "SELECT k COLLATE UTF8_LCASE AS key, array(g, null, i) AS a, map('k', array(g)) AS m, "
        "count(DISTINCT b) AS n FROM rows GROUP BY ALL"
    )
    updates = Updates(session, plan, sql, tmp_path / "state")
    blank = (None,) * 6
    rows = [("U", None, 1, 5, *blank), ("U", 1, 1, 6, *blank), ("U", 1, 1, 7, *blank)]
    updates.apply(rows, inserts=False)
    updates.apply([("U", None, 1, 8, *blank)], rows[1:2], inserts=False)
    assert updates.stored == 3
    updates.apply([], rows[2:], inserts=False)
    assert updates.stored == 2


def test_rows_are_computed_once(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """At the latest before the state is committed, whether or not a sink has read all of them."""

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with (tmp_path / "partitions").open("a") as file:
                file.write(f"{batch.num_rows} ")
            yield batch

    computed = ""
    for is_read in (False, True):
        rows = checkpoint(penstock_spark.range(0, 6, 1, 2).mapInArrow(counted, "id long"))
        if is_read:
            rows.limit(1).collect()
        compute_all(rows)
        computed += "3 3 "
        assert (tmp_path / "partitions").read_text() == computed
        assert rows.count() == 6
    assert (tmp_path / "partitions").read_text() == computed


def test_a_batch_is_at_most_two_jobs(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """One that writes the changes, and one for the partitions of the state that it has not read."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        rows = [{"k": f"k{row % 3}", "g": row % 7, "b": number} for row in range(20)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "nested.yaml").write_text(RUN)
    options = app.RunOptions(until="caught_up")
    assert app.run(tmp_path / "nested.yaml", spark=penstock_spark.newSession(), options=options)
    (checkpoint,) = (tmp_path / "state" / "nested" / "checkpoints").iterdir()
    assert len(list(checkpoint.glob("commits/[0-9]*"))) == 3
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    context = penstock_spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    names = [jobs.apply(index).description().toString() for index in range(jobs.size())]
    assert 3 <= len([name for name in names if query in name]) <= 6


def test_more_partitions_than_buckets(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """The state has as many buckets as partitions, and the same rows."""
    (tmp_path / "in").mkdir()
    text = RUN.replace("blackhole, from: groups", "memory, from: groups, mode: upsert")
    rows = [{"k": f"k{row % 40}", "g": row % 7, "b": row} for row in range(600)]
    memory.clear()
    for number, partitions in enumerate([1, 18]):
        part = rows[number::2]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, part)))
        (tmp_path / "nested.yaml").write_text(
            text.replace("state:", f"partitions: {partitions}, state:")
        )
        options = app.RunOptions(until="caught_up")
        assert app.run(tmp_path / "nested.yaml", spark=penstock_spark.newSession(), options=options)
    (version,) = (tmp_path / "state" / "nested" / "checkpoints").glob("*/updating/1.json")
    assert json.loads(version.read_text())["buckets"] == 18
    expected = {f"k{key}": max(row for row in range(600) if row % 40 == key) for key in range(40)}
    assert {row["k"]: row["m"] for row in memory.tables["out"].to_pylist()} == expected
