"""Decisions about state and determinism, compared with Spark's analysis of all its functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from function_registry import TARGET, Registry, module_text

from penstock import app
from penstock.connectors import memory
from penstock.core.errors import PenstockError
from penstock.sql import determinism, facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  a: {{type: memory, schema: v DOUBLE, rows: [{{v: 1}}, {{v: 2}}], batches: 2}}
transforms:
  b: {{type: sql, sql: "{sql}"}}
sinks:
  out: {{type: memory, from: b, name: {name}, mode: append}}
"""


@pytest.fixture(scope="module")
def registry(penstock_spark: SparkSession) -> Registry:
    return Registry(penstock_spark.newSession())


def test_the_names_of_functions_are_those_of_spark(registry: Registry) -> None:
    assert TARGET.read_text() == module_text(registry.sets())


def test_state_and_determinism_agree_with_spark(registry: Registry) -> None:
    patterns = registry.session.sparkContext._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    wrong = []
    for name in registry.infos:
        for query in registry.examples(name):
            plan = registry.analyze(query)
            if plan is None:
                continue
            stateful = any(
                plan.containsPattern(getattr(patterns, pattern)())
                for pattern in ("AGGREGATE", "DISTINCT_LIKE", "WINDOW", "LIMIT", "SORT")
            )
            found = facts.parse_facts(query)
            if found.tree is not None and stateful and not found.stateful_queries:
                wrong.append(f"no state: {query}")
            random = not plan.deterministic() or registry.reads_clock(query)
            if random and found.deterministic:
                wrong.append(f"deterministic: {query}")
    assert wrong == []


@pytest.mark.parametrize(
    ("sql", "unknown", "code"),
    [
        ("SELECT mean(v) AS mean FROM a", "AGGREGATES", "unexpected-state"),
        ("SELECT v + uniform(0, 1) AS v FROM a", "NONDETERMINISTIC", "unexpected-chance"),
        ("SELECT unix_timestamp() AS v FROM a", "CLOCKS_WITHOUT_ARGUMENTS", "unexpected-chance"),
    ],
)
def test_a_decision_that_spark_contradicts_is_an_error(
    tmp_path: Path,
    penstock_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    sql: str,
    unknown: str,
    code: str,
) -> None:
    module = facts if hasattr(facts, unknown) else determinism
    monkeypatch.setattr(module, unknown, frozenset())
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.format(sql=sql, name="sql_contradicted"))
    with pytest.raises(PenstockError) as raised:
        app.run(path, spark=penstock_spark.newSession())
    assert raised.value.code == code


def test_an_aggregate_of_spark_alone_covers_all_batches(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    path = tmp_path / "p.yaml"
    sql = "SELECT mean(v) AS v FROM a"
    path.write_text(
        PIPELINE.format(sql=sql, name="sql_mean").replace(
            ", mode: append", ", mode: upsert, primary_key: [v]"
        )
    )
    outcome = app.run(path, spark=penstock_spark.newSession())
    assert outcome.errors == {}
    assert memory.tables["sql_mean"].column("v").to_pylist()[-1] == 1.5
