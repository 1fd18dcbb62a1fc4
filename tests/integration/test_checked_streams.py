"""Rows on which SQL fails above a stateful transform: dead letters, and the query goes on."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pipelines import Row, Workspace, assert_same_rows, at, dump
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from penstock.engine.failures.checked_queries import has_checks
from penstock.engine.row_checks.failing_rows import (
    NUMBER,
    FailingRows,
    failing_names,
    read_failing_rows,
    remove_failing_rows,
)
from penstock.engine.row_checks.stream_checks import check_stream
from penstock.plan.model import Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.stop import Stopped

pytestmark = pytest.mark.spark

ROWS: list[Row] = [
    {"at": at(20 * n), "id": n, "text": "x" if n % 25 == 24 else str(n % 7), "by": n % 30}
    for n in range(90)
]
WINDOWS = """\
sources:
  raw:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: at TIMESTAMP, id LONG, text STRING, by INT
transforms:
  parsed: {type: sql, sql: "SELECT at, id, CAST(text AS INT) AS n, by FROM raw"}
  kept:
    type: python
    from: parsed
    schema: at TIMESTAMP, id LONG, n INT, by INT
    per: row
    code: |
      def transform(row):
          if row["id"] == 50:
              raise ValueError("fifty")
          return row
    watermark: {column: at, delay: 1 minute}
  positive: {type: filter, from: kept, where: 100 / by > 1}
  counts:
    type: sql
    sql: |
      SELECT window.start AS start, n % 2 AS odd, count(*) AS count, sum(1 DIV n) AS ones
      FROM positive GROUP BY window(at, '5 minutes'), n % 2
sinks:
  out: {type: memory, from: counts}
"""
REASONS = {
    "parsed": "cast-invalid-input",
    "kept": "rejected",
    "positive": "divide-by-zero",
    "counts": "divide-by-zero",
}


def expected_dead_letters(rows: list[Row]) -> dict[int, str]:
    """Returns the failing node of each bad row."""
    bad: dict[int, str] = {}
    for row in rows:
        if row["text"] == "x":
            bad[row["id"]] = "parsed"
        elif row["id"] == 50:
            bad[row["id"]] = "kept"
        elif row["by"] == 0:
            bad[row["id"]] = "positive"
        elif row["text"] == "0":
            bad[row["id"]] = "counts"
    return bad


def expected_counts(rows: list[Row]) -> pl.DataFrame:
    bad = expected_dead_letters(rows)
    good = pl.DataFrame([row for row in rows if row["id"] not in bad])
    number = pl.col("text").cast(pl.Int32)
    return good.group_by(
        pl.col("at").dt.truncate("5m").alias("start"), (number % 2).alias("odd")
    ).agg(pl.len().alias("count"), (1 // number).cast(pl.Int64).sum().alias("ones"))


def found_dead_letters(workspace: Workspace) -> dict[int, str]:
    """Returns the failing nodes by the IDs of their input rows. Checks the other fields."""
    found: dict[int, str] = {}
    for letter in workspace.dead_letters():
        assert (letter["stage"], letter["code"]) == ("transform", REASONS[letter["node"]])
        id_ = json.loads(letter["payload"])["id"]
        assert id_ not in found
        found[id_] = letter["node"]
    return found


def test_bad_rows_above_a_window_are_dead_letters(workspace: Workspace) -> None:
    workspace.put_rows("in", ROWS[:60], files=2)
    assert workspace.run(WINDOWS, until="caught_up").ending == "caught_up"
    assert found_dead_letters(workspace) == expected_dead_letters(ROWS[:60])
    workspace.put("in/2.jsonl", map(dump, ROWS[60:]))
    assert workspace.run(WINDOWS).ending == "complete"
    assert found_dead_letters(workspace) == expected_dead_letters(ROWS)
    assert_same_rows(workspace.result(), expected_counts(ROWS))
    payloads = [json.loads(letter["payload"]) for letter in workspace.dead_letters()]
    assert {"at": "2026-03-01T10:08:00Z", "id": 24, "text": "x", "by": 24} in payloads
    messages = {letter["node"]: letter["message"] for letter in workspace.dead_letters()}
    assert messages["parsed"].startswith("The value 'x' of the type \"STRING\" cannot be cast")
    assert messages["positive"] == "Division by zero."


STATES = """\
sources:
  raw:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: at TIMESTAMP, id LONG NOT NULL, text STRING NOT NULL
    watermark: {column: at, delay: 1 minute}
  others:
    type: files
    path: others/*.jsonl
    schema: time STRING, k INT, name STRING
    watermark: {column: seen, expression: to_timestamp(time), delay: 1 minute}
transforms:
  parsed: {type: sql, sql: "SELECT at, id, CAST(text AS INT) AS n FROM raw"}
  unique: {type: dedupe, from: parsed, keys: [n], within: forever}
  inverse: {type: map, from: unique, set: {q: "6 / (n - 3)"}}
  joined:
    type: sql
    sql: |
      SELECT p.id, o.name FROM parsed p
      JOIN others o ON p.n = o.k AND p.at BETWEEN o.seen AND o.seen + INTERVAL 1 HOUR
sinks:
  inverted: {type: memory, from: inverse}
  pairs: {type: memory, from: joined}
"""


def put_numbers(workspace: Workspace, file: int, texts: dict[int, str]) -> None:
    rows = [{"at": at(20 * id_), "id": id_, "text": text} for id_, text in texts.items()]
    workspace.put(f"in/{file}.jsonl", map(dump, rows))


def put_names(workspace: Workspace, file: int, names: dict[int, str]) -> None:
    rows = [{"time": time, "k": k, "name": f"name{k}"} for k, time in names.items()]
    workspace.put(f"others/{file}.jsonl", map(dump, rows))


def is_checked(workspace: Workspace, query: str) -> bool:
    return has_checks(workspace.root / ".penstock" / "pipeline" / "checkpoints" / query)


def test_state_remains_valid_when_rows_are_checked(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = at(0).isoformat()
    put_numbers(workspace, 0, {id_: str(id_ % 5) for id_ in range(10)})
    put_names(workspace, 0, dict.fromkeys(range(5), time))
    workspace.run(STATES, until="caught_up")
    assert not is_checked(workspace, "unique") and not is_checked(workspace, "joined")

    texts = {id_: str(id_ % 5) for id_ in range(10, 20)} | {12: "x", 15: "7", 17: "8"}
    put_numbers(workspace, 1, texts)
    put_names(workspace, 1, {7: time, 8: time, 9: "garbage"})
    interrupted: set[str] = set()
    ended = BatchEvents.on_end

    def interrupt(self: BatchEvents, query: Query, number: int) -> None:
        if query.name not in interrupted:
            interrupted.add(query.name)
            raise Stopped
        ended(self, query, number)

    monkeypatch.setattr(BatchEvents, "on_end", interrupt)
    workspace.run(STATES, until="caught_up")
    assert interrupted == {"unique", "joined"}
    assert is_checked(workspace, "unique") and is_checked(workspace, "joined")
    workspace.run(STATES, until="caught_up")

    dead_letters = [(letter, json.loads(letter["payload"])) for letter in workspace.dead_letters()]
    assert sorted(
        (letter["node"], letter["stage"], letter["code"], row.get("id", row.get("k")))
        for letter, row in dead_letters
    ) == [
        ("inverse", "transform", "divide-by-zero", 3),
        ("others", "output", "cast-invalid-input", 9),
        ("parsed", "transform", "cast-invalid-input", 12),
    ]
    inverted = workspace.result("inverted")
    assert dict(zip(inverted["id"], inverted["q"], strict=True)) == {
        id_: 6 / (n - 3) for id_, n in {0: 0, 1: 1, 2: 2, 4: 4, 15: 7, 17: 8}.items()
    }
    numbers = {**{id_: str(id_ % 5) for id_ in range(10)}, **texts}
    assert sorted(workspace.result("pairs").rows()) == [
        (id_, f"name{text}") for id_, text in sorted(numbers.items()) if text != "x"
    ]


def test_a_failure_in_a_time_bound_names_the_expression(workspace: Workspace) -> None:
    """Spark removes rows from the state of a join by its comparisons of event times."""
    failing = "CAST(concat('x', p.n) AS INT)"
    bound = f"p.at >= o.seen - make_dt_interval(0, 0, 0, {failing})"
    text = STATES.replace("p.n = o.k", f"p.n = o.k AND {bound}")
    put_numbers(workspace, 0, {0: "500"})
    put_names(workspace, 0, {500: at(0).isoformat()})
    outcome = workspace.start(text, until="caught_up").wait(120)
    assert outcome is not None
    (error,) = outcome.errors.values()
    assert error.code == "cast-invalid-input"
    assert str(error.message).startswith('transform "joined" (type: sql): The value ')
    assert error.where is not None and error.where.text[error.where.column - 1 :].startswith(
        failing
    )
    assert error.hint is not None and error.hint.startswith("Compute the expression in a transform")


@pytest.mark.parametrize(
    ("sql", "checked"),
    [
        ("SELECT window(at, '1 minute') AS w, count(*) AS c FROM numbers GROUP BY 1", False),
        ("SELECT window(at, '2 minutes', '1 minute').start AS s, max(n) AS m FROM numbers "
         "GROUP BY window(at, '2 minutes', '1 minute')", False),
        ("SELECT at, upper(text) AS u FROM numbers WHERE n > 1", False),
        ("SELECT at, text FROM numbers LATERAL VIEW explode(array(text)) AS item", False),
        ("SELECT CAST(text AS INT) AS k FROM numbers", True),
        ("SELECT at, CAST(text AS INT) AS k, sum(1 / n) AS s FROM numbers GROUP BY 1, 2", True),
        ("SELECT CAST(item AS INT) AS i FROM numbers LATERAL VIEW explode(split(text, ',')) "
         "AS item", True),
        ("SELECT 1 / sum(n) AS q FROM numbers", True),
        ("SELECT n, upper(max(text)) AS m FROM numbers GROUP BY n HAVING count(*) > 1", False),
        ("SELECT sum(n) FILTER (WHERE n > 1) + 1 AS s, CAST(min(text) AS INT) AS m, max(n) AS b, "
         "concat(text, 'x') AS t FROM numbers GROUP BY text HAVING 1 / (count(*) - 1) > 0", True),
    ],
    ids=[
        "window", "sliding", "filter", "generator", "cast", "groups", "generated", "result",
        "safe_result", "having",
    ],
)  # fmt: skip
def test_only_fallible_expressions_of_rows_are_checked(
    penstock_spark: SparkSession, sql: str, checked: bool
) -> None:
    session = penstock_spark.newSession()
    rate = session.readStream.name("rate").format("rate").load()
    numbers = rate.selectExpr(
        "timestamp AS at", "CAST(value AS INT) AS n", "'1,x' || value AS text"
    )
    numbers.createOrReplaceTempView("numbers")
    frame = session.sql(sql)
    with warnings.catch_warnings(action="error"):
        result = check_stream(frame, numbers, FailingRows("node", numbers.schema, None))
    assert (result is not frame) == checked
    if checked:
        assert [field.simpleString() for field in result.schema] == [
            field.simpleString() for field in frame.schema
        ]
        assert [f.nullable for f in result.schema] == [f.nullable for f in frame.schema]


def test_a_row_that_fails_several_times_is_one_failing_row(tmp_path: Path) -> None:
    columns = StructType([StructField("id", LongType())])
    failing = [{"id": 1, NUMBER: 0.5}, None, {"id": 1, NUMBER: 0.5}, {"id": 1, NUMBER: 0.25}]
    type_ = pa.struct([("id", pa.int64()), (NUMBER, pa.float64())])
    for check, rows in enumerate([failing, [None], [{"id": 2, NUMBER: 0.75}]]):
        write = FailingRows("node", columns, str(tmp_path)).of_check(check)
        (passing,) = write(iter([pa.array(rows, type_)]))
        assert passing.to_pylist() == [row is None for row in rows]
    discard = FailingRows("other", columns, None).of_check(0)
    (passing,) = discard(iter([pa.array([{"id": 3, NUMBER: 0.1}, None], type_)]))
    assert passing.to_pylist() == [False, True]
    batch = tmp_path / "None"
    assert failing_names(batch) == ["node"]
    tables = [table for _, table in read_failing_rows(batch, "node", 2)]
    assert [table.to_pydict() for table in tables] == [{"id": [1, 1]}, {"id": [2]}]
    remove_failing_rows(batch)
    assert failing_names(batch) == []
