"""Keys of updating queries in one partition: fewer shuffles, and the same rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_updating_first_rows import PIPELINE, Query, shuffles

from penstock import app
from penstock.engine.updating.changelog import to_changes, to_inserts
from penstock.engine.updating.rows import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.plan.model import Plan

pytestmark = pytest.mark.spark

KEYS = [f"k{number}" for number in range(40)]
TOP = """
    SELECT k, n, name FROM (
        SELECT *, row_number() OVER (PARTITION BY k ORDER BY n DESC, name) AS place FROM rows
    ) WHERE place <= 2"""
JOIN = "SELECT a.k, a.n, b.name FROM rows AS a JOIN rows AS b ON a.k = b.k"
BEST = """
    SELECT k, n, name FROM (
        SELECT a.k, a.n, b.name,
               row_number() OVER (PARTITION BY a.k ORDER BY a.n, b.n, a.name, b.name) AS place
        FROM rows AS a LEFT JOIN rows AS b ON a.k = b.k AND a.n < b.n
    ) WHERE place <= 1"""
GROUPS = "SELECT k, count(*) AS n, max(name) AS name FROM rows GROUP BY k"
LISTS = "SELECT k, count(DISTINCT n) AS n, max(name) AS name FROM rows GROUP BY k"
NAMED = f"SELECT t.k, t.n, names.title FROM ({TOP}) AS t JOIN names ON t.k = names.k"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    return app.plan(tmp_path / "pipeline.yaml")


@pytest.fixture
def session(penstock_spark: SparkSession) -> SparkSession:
    session = penstock_spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "3")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    return session


def compute(
    session: SparkSession, plan: Plan, directory: Path, sql: str, *, inserts: bool = True
) -> Query:
    """Computes a query over two batches, and compares each result with that of Spark."""
    chance = random.Random(7)
    query, rows = Query(session, plan, directory, sql, inserts), []
    for batch in range(2):
        changes = [
            (chance.choice(KEYS), chance.randrange(9), f"{batch}-{number}") for number in range(60)
        ]
        removed = [] if inserts else [rows.pop(chance.randrange(len(rows))) for _ in rows[:5]]
        rows += changes
        query.apply([*changes, *((*row, -1) for row in removed)])
        table = session.createDataFrame(rows, "k string, n int, name string")
        table.createOrReplaceTempView("rows")
        assert query.rows() == sorted(map(tuple, session.sql(sql).collect()))
    return query


@pytest.mark.parametrize("sql", [TOP, GROUPS, LISTS], ids=["top", "groups", "lists"])
def test_rows_of_an_operator_are_not_divided_again(
    sql: str, tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    query = compute(session, plan, tmp_path / "state", sql)
    assert query.shuffles == [0, 0]
    assert query.adds_only == [True, False]


@pytest.mark.parametrize("inserts", [True, False], ids=["inserts", "deletes"])
def test_an_inner_join_of_added_rows_only_adds_rows(
    inserts: bool, tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    query = compute(session, plan, tmp_path / "state", JOIN, inserts=inserts)
    assert query.adds_only == [True, inserts]


@pytest.mark.parametrize("inserts", [True, False], ids=["inserts", "deletes"])
def test_operators_above_each_other(
    inserts: bool, tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    query = compute(session, plan, tmp_path / "state", BEST, inserts=inserts)
    assert query.adds_only == [True, False]


def test_a_table_is_divided_as_the_rows_that_it_is_joined_with(
    tmp_path: Path, session: SparkSession, plan: Plan
) -> None:
    names = [(key, f"the {key}") for key in KEYS]
    session.createDataFrame(names, "k string, title string").createOrReplaceTempView("names")
    query = compute(session, plan, tmp_path / "state", NAMED)
    assert min(query.shuffles) > 0


def test_added_rows_have_the_columns_of_changes(session: SparkSession) -> None:
    rows = session.sql(f"SELECT id, string(id) AS `a.b`, 1 AS {WEIGHT} FROM range(4)")
    inserts = to_inserts(rows, "op")
    changes = to_changes(rows, ["id"], "op")
    assert inserts.schema == changes.schema
    assert all(field.nullable for field in changes.schema.fields[:2])
    assert sorted(inserts.collect()) == sorted(changes.collect())
    assert shuffles(inserts) == 0
