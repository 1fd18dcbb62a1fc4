"""Outer joins of two streams: null keys, and conditions beside the keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app
from penstock.connectors import memory
from penstock.runtime.handle import RunHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIME = "2024-01-01T00:00:00Z"
SOURCES: dict[str, Any] = {
    "a": {"schema": "at TIMESTAMP, k LONG", "watermark": {"column": "at"},
          "rows": [{"at": TIME, "k": 1}, {"at": TIME}]},
    "keyed": {"schema": "at TIMESTAMP, k LONG NOT NULL", "watermark": {"column": "at"},
              "rows": [{"at": TIME, "k": 1}, {"at": TIME, "k": 1}]},
    **{f"untimed_{side}": {"schema": "at TIMESTAMP, k LONG", "watermark": {"column": "at"},
                           "rows": [{"at": TIME, "k": 1}, {"k": 3}, {"k": 4}]}
       for side in ("left", "full")},
    "b": {"schema": "bt TIMESTAMP, j LONG", "watermark": {"column": "bt"},
          "rows": [{"bt": TIME, "j": 2}, {"bt": TIME}]},
}  # fmt: skip
JOINED = """
    SELECT at IS NULL AS no_a, k, bt IS NULL AS no_b, j FROM {source} {side} JOIN b
    ON {keys} AND at BETWEEN bt - INTERVAL 1 HOUR AND bt + INTERVAL 1 HOUR
"""
WINDOWS = """
    SELECT k, j, p.n AS pn, q.n AS qn FROM (SELECT k, tumble(INTERVAL '1 hour') AS window,
    count(*) AS n FROM keyed GROUP BY k, window) p FULL JOIN (SELECT j, tumble(INTERVAL '1 hour')
    AS window, count(*) AS n FROM b GROUP BY j, window) q ON k = j
"""
ONE, NULL = (False, 1, True, None), (False, None, True, None)
TWO, OTHER_NULL = (True, None, False, 2), (True, None, False, None)
BOTH_NULL = (False, None, False, None)
CASES = [
    ("FULL", "k = j", {ONE, NULL, TWO, OTHER_NULL}),
    ("FULL", "k = coalesce(j, -1)", {ONE, NULL, TWO, OTHER_NULL}),
    ("FULL", "k <=> j", {ONE, BOTH_NULL, TWO}),
    ("LEFT", "k = j", {ONE, NULL}),
    ("RIGHT", "k = j", {TWO, OTHER_NULL}),
    # Comparisons that are no bounds of event times, also after NOT is removed.
    ("LEFT", "k = j AND NOT (k <= 0 OR k > 9)", {ONE, NULL}),
    ("RIGHT", "k = j AND unix_timestamp(bt) > k AND j < 7", {TWO, OTHER_NULL}),
    ("FULL", "k = j AND k > 0 AND bt > TIMESTAMP '2000-01-01'", {ONE, NULL, TWO, OTHER_NULL}),
]


@pytest.fixture(scope="module")
def handle(tmp_path_factory: pytest.TempPathFactory, penstock_spark: SparkSession) -> RunHandle:
    """A finished run of all queries, whose sinks are tables in memory."""
    queries = {
        f"joined{number}": JOINED.format(source="a", side=side, keys=keys)
        for number, (side, keys, _) in enumerate(CASES)
    }
    for side in ("LEFT", "FULL"):
        source, keys = f"untimed_{side.lower()}", "k = coalesce(j, -1)"
        queries[f"of_{source}"] = JOINED.format(source=source, side=side, keys=keys)
    queries["windows"] = WINDOWS
    path = tmp_path_factory.mktemp("joins") / "p.yaml"
    path.write_text(
        json.dumps({
            "sources": {name: {"type": "memory", **source} for name, source in SOURCES.items()},
            "transforms": {name: {"type": "sql", "sql": sql} for name, sql in queries.items()},
            "sinks": {f"{name}_out": {"type": "memory", "from": name, "name": f"stream_{name}"}
                      for name in queries},
        })
    )  # fmt: skip
    memory.clear()
    handle = app.start(path, spark=penstock_spark.newSession())
    outcome = handle.wait(600)
    assert outcome is not None
    assert (outcome.ending, outcome.errors) == ("complete", {})
    return handle


def rows_of(query: str) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in memory.tables[f"stream_{query}"].to_pylist()}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_rows_without_a_match_are_written(handle: RunHandle, number: int) -> None:
    """Null keys match only where the query says so."""
    assert rows_of(f"joined{number}") == CASES[number][2]


def test_windows_are_keys_that_are_never_null(handle: RunHandle) -> None:
    """Their times can be null, but such rows are in no window. `k` is declared NOT NULL."""
    assert rows_of("windows") == {(1, None, 2, None), (None, 2, None, 1), (None, None, None, 1)}


def test_rows_of_outer_joins_without_event_time_are_counted(handle: RunHandle) -> None:
    """Spark emits no row for them, because no watermark passes their time."""
    nodes = handle.metrics.snapshot()["nodes"]
    for source, keys in (("untimed_left", {1}), ("untimed_full", {1, None})):
        assert nodes[source]["without_event_time"] == 2
        assert {row[1] for row in rows_of(f"of_{source}")} == keys
