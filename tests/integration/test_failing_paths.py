"""Rows on which any function fails become dead letters, wherever SQL evaluates the function."""

from __future__ import annotations

from collections import Counter

import pytest
from pipelines import Row, Workspace, at
from pyspark.sql import SparkSession

from penstock import app
from penstock.control import PipelineControl

pytestmark = pytest.mark.spark

SOURCE = """\
runtime: {partitions: 2}
sources:
  s:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: i LONG, k LONG, text STRING, at TIMESTAMP
"""
WATERMARK = "    watermark: {column: at, delay: 1 minute}\n"
FUNCTIONS = {
    "raise_error('no ' || text)": "user-raised-exception",
    "coalesce(assert_true(text = 'a', text), text)": "user-raised-exception",
    "split('xay', text)[0]": "sql-failed",
    "format_string(concat('%', text), 1.5D)": "sql-failed",
    "to_json(map(text, '1', if(text = '(', '(', 'b'), '2'))": "duplicated-map-key",
}
"""Functions that fail on the text `(`, and the codes of their errors."""
CODES = Counter(FUNCTIONS.values())
ROWS: list[Row] = [
    {"i": i, "k": i % 3, "text": "a" if i % 2 or i == 10 else "(", "at": at(10 * i)}
    for i in range(12)
]
GOOD = [row["i"] for row in ROWS if row["text"] == "a"]
FAILING = "CASE i {} ELSE text END".format(
    " ".join(f"WHEN {2 * i} THEN {call}" for i, call in enumerate(FUNCTIONS))
)


def pipeline(sql: str, source: str = SOURCE, sink: str = "memory") -> str:
    return (
        f"{source}transforms:\n  q:\n    type: sql\n    sql: |\n      {sql}\n"
        f"sinks:\n  out: {{type: {sink}, from: q}}\n"
    )


def failures(workspace: Workspace, node: str, stage: str) -> Counter[str]:
    """Returns the number of dead letters by code; all are of this node and stage."""
    dead_letters = workspace.dead_letters()
    assert {(letter["node"], letter["stage"]) for letter in dead_letters} == {(node, stage)}
    return Counter(letter["code"] for letter in dead_letters)


@pytest.fixture
def place(workspace: Workspace) -> Workspace:
    workspace.put_rows("in", ROWS, files=2)
    return workspace


def test_stateless(place: Workspace, penstock_spark: SparkSession) -> None:
    place.run(pipeline(f"SELECT i FROM s WHERE {FAILING} IS NOT NULL"))
    assert sorted(place.result()["i"]) == GOOD
    assert failures(place, "q", "transform") == CODES
    result = PipelineControl.of(app.plan(place.root / place.file)).replay(
        spark=penstock_spark.newSession()
    )
    assert (result.replayed, result.failed) == (0, len(FUNCTIONS))
    assert failures(place, "q", "transform") == CODES


def test_stateful(place: Workspace) -> None:
    """The keys of a map that failed are not keys of the next map."""
    counted = f"count(*) FILTER (WHERE {FAILING} IS NOT NULL) AS n"
    size = "max(size(map(text, 1, if(i = 8, text, string(i)), 2))) AS size"
    sql = f"SELECT window.start AS t, {counted}, {size} FROM s GROUP BY window(at, '1 minute')"
    place.run(pipeline(sql, SOURCE + WATERMARK))
    assert sorted(place.result()["n"]) == [3, 4]
    assert set(place.result()["size"]) == {2}
    assert failures(place, "q", "transform") == CODES


def test_updating(place: Workspace) -> None:
    source = SOURCE.replace("    schema", "    watch: true\n    schema")
    sql = f"SELECT k, count({FAILING}) AS n FROM s GROUP BY k"
    place.run(pipeline(sql, source, "files, path: out, format: debezium_json"), until="caught_up")
    assert failures(place, "q", "transform") == CODES


def test_event_time(place: Workspace) -> None:
    time = f"if({FAILING} IS NULL, NULL, at)"
    source = f'{SOURCE}    watermark: {{column: time, expression: "{time}", delay: 1 minute}}\n'
    sql = "SELECT window.start AS t, count(*) AS n FROM s GROUP BY window(time, '1 minute')"
    place.run(pipeline(sql, source))
    assert sorted(place.result()["n"]) == [3, 4]
    assert failures(place, "s", "output") == CODES


def test_search_by_bisection(place: Workspace) -> None:
    """The regular expression exhausts the stack of the task on the last row."""
    rows = "(SELECT *, row_number() OVER (ORDER BY i) AS number FROM s)"
    deep = "repeat('ab', if(i = 11, 400000, 1)) RLIKE '(a|b)*c'"
    text = pipeline(f"SELECT i, {FAILING} AS x, {deep} AS y FROM {rows}")
    place.run(text.replace("    type: sql\n", "    type: sql\n    scope: batch\n"))
    assert sorted(place.result()["i"]) == GOOD[:-1]
    assert failures(place, "q", "transform") == CODES + Counter({"sql-failed": 1})
