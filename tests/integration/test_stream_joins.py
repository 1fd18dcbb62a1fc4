"""Outer joins of two streams with null keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app
from penstock.connectors import memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIME = "2024-01-01T00:00:00Z"
PIPELINE = """\
sources:
  a:
    {{type: memory, schema: "at TIMESTAMP, k LONG", watermark: {{column: at}},
      rows: [{{at: {time}, k: 1}}, {{at: {time}}}]}}
  b:
    {{type: memory, schema: "bt TIMESTAMP, j LONG", watermark: {{column: bt}},
      rows: [{{bt: {time}, j: 2}}, {{bt: {time}}}]}}
transforms:
  joined:
    type: sql
    sql: |
      SELECT at IS NULL AS no_a, k, bt IS NULL AS no_b, j FROM a {side} JOIN b
      ON {keys} AND at BETWEEN bt - INTERVAL 1 HOUR AND bt + INTERVAL 1 HOUR
sinks:
  out: {{type: memory, from: joined, name: stream_joins}}
"""
ONE, NULL = (False, 1, True, None), (False, None, True, None)
TWO, OTHER_NULL = (True, None, False, 2), (True, None, False, None)
BOTH_NULL = (False, None, False, None)


def joined(directory: Path, spark: SparkSession, side: str, keys: str) -> set[tuple[Any, ...]]:
    path = directory / "p.yaml"
    path.write_text(PIPELINE.format(time=TIME, side=side, keys=keys))
    memory.clear()
    outcome = app.run(path, spark=spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    return {tuple(row.values()) for row in memory.tables["stream_joins"].to_pylist()}


@pytest.mark.parametrize(
    ("side", "keys", "rows"),
    [
        ("FULL", "k = j", {ONE, NULL, TWO, OTHER_NULL}),
        ("FULL", "k = coalesce(j, -1)", {ONE, NULL, TWO, OTHER_NULL}),
        ("FULL", "k <=> j", {ONE, BOTH_NULL, TWO}),
        ("LEFT", "k = j", {ONE, NULL}),
        ("RIGHT", "k = j", {TWO, OTHER_NULL}),
    ],
)
def test_null_keys_match_only_where_the_query_says_so(
    tmp_path: Path,
    penstock_spark: SparkSession,
    side: str,
    keys: str,
    rows: set[tuple[Any, ...]],
) -> None:
    assert joined(tmp_path, penstock_spark, side, keys) == rows


WINDOWS = """
      SELECT k, j, p.n AS pn, q.n AS qn FROM (SELECT k, tumble(INTERVAL '1 hour') AS window,
      count(*) AS n FROM a GROUP BY k, window) p FULL JOIN (SELECT j, tumble(INTERVAL '1 hour') AS
      window, count(*) AS n FROM b GROUP BY j, window) q ON k = j
sinks:
"""


def test_windows_are_keys_that_are_never_null(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Their times can be null, but such rows are in no window. `k` is declared NOT NULL."""
    sources = PIPELINE[: PIPELINE.index("      SELECT")].format(time=TIME)
    sources = sources.replace("k LONG", "k LONG NOT NULL")
    sources = sources.replace(f"k: 1}}, {{at: {TIME}}}", f"k: 1}}, {{at: {TIME}, k: 1}}")
    sink = PIPELINE[PIPELINE.index("  out:") :].format()
    memory.clear()
    (tmp_path / "p.yaml").write_text(sources + WINDOWS + sink)
    outcome = app.run(tmp_path / "p.yaml", spark=penstock_spark.newSession())
    assert outcome.errors == {}
    rows = {tuple(row.values()) for row in memory.tables["stream_joins"].to_pylist()}
    assert rows == {(1, None, 2, None), (None, 2, None, 1), (None, None, None, 1)}


@pytest.mark.parametrize("side", ["LEFT", "FULL"])
def test_rows_of_outer_joins_without_event_time_are_counted(
    tmp_path: Path, penstock_spark: SparkSession, side: str
) -> None:
    """Spark emits no row for them, because no watermark passes their time."""
    text = PIPELINE.format(time=TIME, side=side, keys="k = coalesce(j, -1)")
    (tmp_path / "p.yaml").write_text(text.replace(f"{{at: {TIME}}}]", "{k: 3}, {k: 4}]"))
    memory.clear()
    handle = app.start(tmp_path / "p.yaml", spark=penstock_spark.newSession())
    outcome = handle.wait(120)
    assert outcome is not None and outcome.errors == {}
    assert handle.metrics.snapshot()["nodes"]["a"]["without_event_time"] == 2
    assert {row["k"] for row in memory.tables["stream_joins"].to_pylist()} == (
        {1} if side == "LEFT" else {1, None}
    )
