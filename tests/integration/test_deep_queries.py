"""Deeply nested SQL: computed, or an error at its place instead of an overflow of Java's stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock import app
from penstock.core.errors import PenstockError
from penstock.engine.catalyst.deep_queries import locate_overflows
from penstock.runtime.diagnose import diagnose

pytestmark = pytest.mark.spark

TABLE = "CREATE TABLE k (t STRING) WITH (connector='files', path='in.json', format='json');\n"


def test_expressions_with_many_parts_run(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "in.json").write_text('{"t": "5"}\n')
    terms, nested = " || ".join(["t"] * 500), "(" * 2000 + "t" + ")" * 2000
    query = f"SELECT length({terms}) AS n, {nested} AS t FROM k"
    (tmp_path / "s.sql").write_text(f"{TABLE}{query};\n")
    result = cli(tmp_path, "run", "s.sql", "--quiet")
    assert result.returncode == 0
    assert '{"n":500,"t":"5"}' in result.stdout


def test_an_overflow_of_the_stack_is_an_error_at_the_longest_query(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    views = "CREATE VIEW v AS SELECT t FROM k;\nCREATE VIEW w AS SELECT concat(t, t) AS t FROM v;"
    (tmp_path / "s.sql").write_text(f"{TABLE}{views}\nSELECT t FROM w;\n")
    plan = app.plan(tmp_path / "s.sql")
    with pytest.raises(PenstockError) as caught:  # noqa: SIM117
        with locate_overflows(plan, list(plan.nodes.values())):
            overflow(penstock_spark)
    error = caught.value
    assert error.code == "too-deep"
    assert error.message.startswith('transform "w" (type: sql): the query is nested too deeply')
    assert error.where is not None and error.where.line == 3
    assert error.hint == "Split the query into several views or transforms."


def test_other_errors_of_java_are_not_changed(tmp_path: Path, penstock_spark: SparkSession) -> None:
    (tmp_path / "s.sql").write_text(f"{TABLE}SELECT t FROM k;\n")
    plan = app.plan(tmp_path / "s.sql")
    java: Any = penstock_spark.sparkContext._jvm
    with pytest.raises(Exception, match="NoSuchElementException"):  # noqa: SIM117
        with locate_overflows(plan, list(plan.nodes.values())):
            java.java.util.ArrayDeque().getFirst()


def test_an_overflow_during_a_run_is_diagnosed(tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(f"{TABLE}SELECT t FROM k;\n")
    plan = app.plan(tmp_path / "s.sql")
    error = RuntimeError("Job aborted: java.lang.StackOverflowError\n\tat org.apache.spark.X")
    assert diagnose(plan, plan.queries[0], error).code == "too-deep"


def overflow(spark: SparkSession) -> None:
    """Overflows the stack of Java: the hash of a list that contains itself is recursive."""
    java: Any = spark.sparkContext._jvm
    endless = java.java.util.ArrayList()
    endless.add(endless)
    endless.hashCode()
