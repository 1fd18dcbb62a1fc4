"""Diagnosis of SQL that fails on a value: the node and the position of the expression."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from penstock import app
from penstock.core.errors import Transient
from penstock.runtime.diagnose import diagnose

PIPELINE = """\
sources:
  raw:
    type: files
    path: "*.jsonl"
    schema: time STRING, text STRING, by INT
    watermark:
      column: at
      expression: to_timestamp(time)
transforms:
  low: {type: filter, from: raw, where: CAST(text AS INT) < 10}
  parsed: {type: map, from: low, set: {m: by + 1, n: 1 + CAST(text AS INT)}, on_error: fail}
  counts:
    type: sql
    sql: |
      SELECT window.start AS start,
             10 / (count(*) - 1) AS q
      FROM parsed GROUP BY window(at, '5 minutes')
sinks:
  out: {type: print, from: counts}
"""


@pytest.mark.parametrize(
    ("line", "position", "quote", "node", "place"),
    [
        (1, 1, "to_timestamp(time)", 'source "raw" (type: files)', (8, 19)),
        (1, 1, "CAST(text AS INT) < 10", 'transform "low" (type: filter)', (10, 41)),
        (1, 5, "1 + CAST(text AS INT)", 'transform "parsed" (type: map)', (11, 58)),
        (2, 8, "       10 / (count(*) - 1) AS q", 'transform "counts" (type: sql)', (16, 14)),
    ],
    ids=["watermark", "filter", "map", "sql"],
)  # fmt: skip
def test_the_failing_expression_is_located(
    tmp_path: Path, line: int, position: int, quote: str, node: str, place: tuple[int, int]
) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    (query,) = plan.queries
    error = PySparkException(
        '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT" '
        "because it is malformed. Correct the value as per the syntax. SQLSTATE: 22018\n"
        f"== SQL (line {line}, position {position}) ==\n{quote}\n{' ' * (position - 1)}^^^^\n"
    )
    found = diagnose(plan, query, error)
    assert str(found.message).startswith(f"{node}: The value 'x' of the type")
    assert found.where is not None and (found.where.line, found.where.column) == place
    assert found.hint is not None
    assert ("filter the rows before" in found.hint) == ("parsed" in node)


def test_an_expression_without_a_quote_is_an_error_of_the_query(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    error = PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    found = diagnose(plan, plan.queries[0], error)
    assert str(found.message) == 'query "counts": Division by zero.'
    assert found.code == "divide-by-zero"
    assert found.where == plan.nodes["counts"].where


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("ResultStage 6 has failed the maximum allowable number of times: 4. Most recent failure "
         "reason: org.apache.spark.shuffle.FetchFailedException", "lost-worker", "lost a worker"),
        ("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_464_0 not found!",
         "lost-worker", "lost a worker"),
        ("Task 0 in stage 2.1 failed 4 times, most recent failure: Lost task 0.3 in stage 2.1 "
         "(TID 17) (node-b executor 0): java.io.IOException: No space left on device",
         "disk-full", "a disk of node-b executor 0 is full"),
        ("Lost task 0.3 in stage 2.1 (TID 17) (node-b executor 0): "
         "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
         "  File \"x.py\", line 1, in <module>\nOSError: [Errno 28] No space left on device\n",
         "disk-full", "a disk of node-b executor 0 is full"),
    ],
)  # fmt: skip
def test_failures_of_executors_are_retried(
    tmp_path: Path, text: str, code: str, message: str
) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    failure = f"org.apache.spark.SparkException: Job aborted due to stage failure: {text}"
    found = diagnose(plan, plan.queries[0], PySparkException(failure))
    assert isinstance(found, Transient) and found.policy.retried
    assert found.code == code and message in found.message


def test_a_full_disk_of_the_driver_is_not_retried(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    for text in (
        "java.io.IOException: No space left on device",
        "Lost task 0.3 in stage 2.1 (TID 17) (localhost executor driver): java.io.IOException: "
        "No space left on device",
        "Lost task 0.3 in stage 2.1 (TID 17) (node-b executor 0): java.lang.Exception\n\n"
        "Driver stacktrace:\nCaused by: java.io.IOException: No space left on device",
    ):
        found = diagnose(plan, plan.queries[0], PySparkException(text))
        assert found.code == "disk-full" and not found.policy.retried
        assert str(plan.state) in found.message
