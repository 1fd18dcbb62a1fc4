"""Runs from file to file: restarts, refusals, dead letters, and what the state remembers."""

from __future__ import annotations

import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.cli.main import main
from penstock.control import PipelineControl
from penstock.core.errors import PenstockError, StateError
from penstock.core.standard_streams import _Output
from penstock.engine.spark_session.shared import reusing
from penstock.plan.model import Plan
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.outcome import Outcome
from penstock.runtime.state.directory import StateDirectory

pytestmark = pytest.mark.spark

ORDERS = """\
name: orders
sources:
  orders:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: id LONG, price DOUBLE, n INT, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
"""
OUT = """\
sinks:
  out:
    type: files
    from: FROM
    path: out
"""
HOURLY = """\
transforms:
  hourly:
    type: sql
    sql: |
      SELECT window.start AS hour, count(*) AS orders, sum(price) AS total
      FROM orders GROUP BY window(at, '1 hour')
"""


class Place:
    """A directory with a pipeline file, its input and its output."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root = root
        self.spark = spark
        self.notes: list[str] = []

    def give(self, name: str, *rows: dict[str, Any] | str) -> None:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path = self.root / "in" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def plan(self, *parts: str) -> Plan:
        file = self.root / "pipeline.yaml"
        file.write_text("".join(parts))
        return app.plan(file)

    def run(self, *parts: str, **options: Any) -> Outcome:
        given = RunOptions(on_note=self.notes.append, **options)
        return app.run(self.plan(*parts), spark=self.spark.newSession(), options=given)

    def rows(self, directory: str = "out") -> list[dict[str, Any]]:
        files = sorted((self.root / directory).glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def dead_letters(self) -> list[dict[str, Any]]:
        state = StateDirectory(self.root / ".penstock" / "orders")
        return list(DeadLetters(state.dead_letters).read().to_pylist())


@pytest.fixture
def place(tmp_path: Path, penstock_spark: SparkSession) -> Place:
    return Place(tmp_path, penstock_spark)


def order(number: int, hour: int = 0, **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T{hour:02}:{number % 60:02}:00Z"
    return {"id": number, "price": 1.0, "n": 1, "at": at, **more}


def sink(name: str) -> str:
    return OUT.replace("FROM", name)


def python(code: str, schema: str = "id LONG") -> str:
    body = "".join(f"      {line}\n" for line in code.splitlines())
    return (
        "transforms:\n  step:\n    type: python\n    from: orders\n"
        f"    schema: {schema}\n    deterministic: true\n    code: |\n{body}"
    )


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


FAILS_AT_FIRST = """\
import pathlib
from penstock.core.errors import Transient
def transform(batch):
    for attempt in range(8):  # Spark tries a task four times before the query fails
        mark = pathlib.Path("ROOT") / str(attempt)
        if not mark.exists():
            mark.touch()
            raise Transient("could not reach the moon", hint="look up")
    return batch.select(["id"])
"""
QUICK = "runtime: {restart: {attempts: 3, backoff: 10ms, max_backoff: 20ms}}\n"


def test_a_transient_failure_restarts_the_query(place: Place) -> None:
    place.give("a", *(order(n) for n in range(5)))
    step = python(FAILS_AT_FIRST.replace("ROOT", str(place.root)))
    seen: list[Any] = []
    outcome = place.run(
        ORDERS, step, sink("step"), QUICK, on_start=lambda _, metrics: seen.append(metrics)
    )
    assert outcome.ending == "complete"
    assert seen[0].restarts == 2
    assert ids(place.rows()) == [0, 1, 2, 3, 4]


def test_after_a_failure_the_next_run_goes_on(place: Place) -> None:
    place.give("a", order(1))
    place.give("b", order(2, n=0))
    place.give("c", order(3))
    divide = "transforms:\n  step:\n    type: sql\n    on_error: fail\n"
    failing = divide + "    sql: SELECT id, price / n AS unit FROM orders\n"
    assert place.run(ORDERS, failing, sink("step")).exit_code == 1
    assert ids(place.rows()) == [1]
    mended = failing.replace("price / n", "try_divide(price, n)")
    assert place.run(ORDERS, mended, sink("step")).ending == "complete"
    assert ids(place.rows()) == [1, 2, 3]


TWO = """\
transforms:
  hourly:
    type: sql
    on_error: fail
    sql: |
      SELECT window.start AS hour, sum(price) / min(n) AS total
      FROM orders GROUP BY window(at, '1 hour')
sinks:
  out: {type: files, from: orders, path: out}
  totals: {type: files, from: hourly, path: totals}
"""


STOP_QUERY = "runtime: {restart: {on_permanent: stop_query}}\n"


def test_a_failing_query_and_the_others(place: Place) -> None:
    place.give("a", order(1, n=0))
    for number in range(2, 6):
        place.give(f"b{number}", order(number))
    outcome = place.run(ORDERS, TWO, STOP_QUERY)
    assert (outcome.ending, outcome.exit_code) == ("failed", 1)
    assert list(outcome.errors) == ["hourly"]
    error = outcome.errors["hourly"]
    assert error.code == "divide-by-zero"
    assert error.where is not None
    assert "sum(price) / min(n)" in error.where.text[error.where.column - 1 :]
    assert ids(place.rows()) == [1, 2, 3, 4, 5]


def test_caught_up_leaves_the_windows_open_and_the_end_closes_them(place: Place) -> None:
    place.give("a", order(1), order(2))
    outcome = place.run(ORDERS, HOURLY, sink("hourly"), until="caught_up")
    assert outcome.ending == "caught_up"
    assert place.rows() == []
    with pytest.raises(StateError) as caught:
        place.run(ORDERS, HOURLY.replace("1 hour", "2 hours"), sink("hourly"))
    assert caught.value.code == "changed-plan"
    assert 'transform "hourly": sql changed' in str(caught.value.detail)
    place.give("b", order(3), order(4, hour=3))
    place.run(ORDERS, HOURLY, sink("hourly"), until="caught_up")
    assert [row["orders"] for row in place.rows()] == [3]
    assert place.run(ORDERS, HOURLY, sink("hourly")).ending == "complete"
    assert [row["orders"] for row in place.rows()] == [3, 1]
    with pytest.raises(StateError) as caught:
        place.run(ORDERS, HOURLY, sink("hourly"))
    assert caught.value.code == "complete"


def test_a_complete_stream_without_windows_goes_on(place: Place) -> None:
    place.give("a", order(1))
    assert place.run(ORDERS, sink("orders")).ending == "complete"
    place.give("b", order(2))
    assert place.run(ORDERS, sink("orders")).ending == "complete"
    assert ids(place.rows()) == [1, 2]


def test_replay_does_not_reach_what_is_remembered_and_fresh_removes_it(place: Place) -> None:
    place.give("a", order(1), "not json")
    place.run(ORDERS, HOURLY, sink("hourly"))
    assert len(place.dead_letters()) == 1
    control = PipelineControl.of(place.plan(ORDERS, HOURLY, sink("hourly")))
    done = control.replay(spark=place.spark.newSession())
    assert [(node.node, node.count) for node in done.skipped] == [("orders", 1)]
    assert "hourly" in done.skipped[0].reason
    assert place.run(ORDERS, HOURLY, sink("hourly"), fresh=True).ending == "complete"
    assert "removed offsets and open windows of hourly, dead letters" in place.notes[-1]
    assert len(place.dead_letters()) == 1


INFERRED = ORDERS.replace("    schema: id LONG, price DOUBLE, n INT, at TIMESTAMP\n", "")


def test_an_unchanged_pipeline_with_inferred_columns_goes_on(place: Place) -> None:
    """With a query that has state, and with one that has none. Both report a bad record once."""
    assert "schema:" not in INFERRED
    sinks = sink("hourly") + "  all: {type: files, from: orders, path: all}\n"
    place.give("a", order(1))
    place.run(INFERRED, HOURLY, sinks, until="caught_up")
    place.give("b", order(2), "not json")
    place.run(INFERRED, HOURLY, sinks, until="caught_up")
    assert [note for note in place.notes if "changed" in note] == []
    assert ids(place.rows("all")) == [1, 2]
    assert [letter["code"] for letter in place.dead_letters()] == ["not-json"]
    declared = f"{INFERRED}    schema: at TIMESTAMP, id LONG\n"
    with pytest.raises(StateError) as caught:
        place.run(declared, HOURLY, sinks, until="caught_up")
    assert 'source "orders": columns changed' in str(caught.value.detail)


def test_two_runs_at_once_are_an_error(place: Place) -> None:
    place.give("a", order(1))
    plan = place.plan(ORDERS, sink("orders"))
    with StateDirectory(plan.state).locked(), pytest.raises(StateError) as caught:
        place.run(ORDERS, sink("orders"))
    assert caught.value.code == "already-running"


DIRTY = (
    order(1), "not json", order(2, n=0), {**order(3), "price": "dear"}, order(4), order(5),
)  # fmt: skip
STEPS = """\
transforms:
  unit:
    type: sql
    sql: SELECT id, price / n AS unit FROM orders
  step:
    type: python
    from: unit
    schema: id LONG, unit DOUBLE
    per: row
    code: |
      def transform(row):
          if row["id"] == 4:
              raise ValueError("four is unlucky")
          return row
"""


def test_bad_records_are_dead_letters_and_replay_enters_where_they_failed(place: Place) -> None:
    place.give("a", *DIRTY)
    assert place.run(ORDERS, STEPS, sink("step")).ending == "complete"
    assert ids(place.rows()) == [1, 5]
    found = {(x["node"], x["stage"], x["code"], x["position"]) for x in place.dead_letters()}
    assert found == {
        ("orders", "decode", "not-json", 2),
        ("orders", "decode", "wrong-type", 4),
        ("unit", "transform", "divide-by-zero", 3),
        ("step", "transform", "rejected", None),
    }
    spark = place.spark.newSession()
    again = PipelineControl.of(place.plan(ORDERS, STEPS, sink("step"))).replay(spark=spark)
    assert (again.replayed, again.failed) == (0, 4)
    assert {letter["attempt"] for letter in place.dead_letters()} == {2}
    mended = STEPS.replace("price / n", "try_divide(price, n)").replace("== 4", "== 44")
    sent = PipelineControl.of(place.plan(ORDERS, mended, sink("step"))).replay(spark=spark)
    assert (sent.replayed, sent.failed) == (2, 2)
    assert ids(place.rows()) == [1, 2, 4, 5]
    assert {letter["code"] for letter in place.dead_letters()} == {"not-json", "wrong-type"}


STRICT = """\
  strict: {type: files, path: in/*.jsonl, schema: id LONG, on_error: fail}
sinks:
  out: {type: files, from: orders, path: out}
  none: {type: files, from: strict, path: none}
"""


def test_other_ways_with_bad_records(place: Place) -> None:
    place.give("a", order(1), "not json")
    outcome = place.run(f"{ORDERS}    on_error: drop\n", STRICT, STOP_QUERY)
    assert (outcome.exit_code, list(outcome.errors)) == (1, ["strict"])
    assert place.dead_letters() == []
    assert (ids(place.rows()), place.rows("none")) == ([1], [])


def test_too_many_dead_letters_stop_the_pipeline(place: Place) -> None:
    for number in range(4):
        place.give(f"a{number}", *(["not json"] * 50))
    bounds = "runtime: {dead_letters: {max_size: 1 KB}}\n"
    outcome: Outcome | None = None
    try:
        outcome = place.run(ORDERS, sink("orders"), bounds)
    except PenstockError as error:
        assert error.code == "too-many-dead-letters"
    assert outcome is None or outcome.exit_code == 4


JOINED = """\
name: orders
sources:
  orders:
    type: files
    path: in/*.jsonl
    schema: id LONG, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
  clicks:
    type: memory
    rows: [{id: 1, seen: '2026-01-01T00:00:30Z'}]
    schema: id LONG, seen TIMESTAMP
    watermark: {column: seen, delay: 1 minute}
transforms:
  joined:
    type: sql
    sql: |
      SELECT orders.id FROM clicks JOIN orders ON clicks.id = orders.id
      AND seen BETWEEN at AND at + INTERVAL 1 HOUR
sinks:
  out: {type: files, from: joined, path: out}
"""


def test_rows_are_counted_for_the_source_they_came_from(place: Place) -> None:
    place.give("a", *(order(n, at="2026-01-01T00:00:00Z") for n in range(5)))
    seen: list[Any] = []
    place.run(JOINED, on_start=lambda _, metrics: seen.append(metrics))
    rows = {name: flow.rows for name, flow in seen[0].flows.items()}
    assert rows == {"orders": 5, "clicks": 1, "out": 1}


def test_end_of_the_reader_of_the_output_ends_an_endless_run(
    tmp_path: Path, penstock_spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the failure of one query does not stop the others."""
    file = tmp_path / "endless.yaml"
    file.write_text(
        f"name: endless\nruntime: {{restart: {{on_permanent: stop_query}}, state: {tmp_path}}}\n"
        "sources:\n  n: {type: generate, rate: 50, fields: {id: sequence}}\n"
        "  m: {type: generate, rate: 50, fields: {id: sequence}}\n"
        "sinks:\n  out: {type: print, from: n}\n  other: {type: blackhole, from: m}\n"
    )
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(writing, "w") as pipe:
        first = pool.submit(_first_line, reading)
        output = io.TextIOWrapper(io.BufferedWriter(_Output(pipe.fileno(), "stdout")), "utf-8")
        with redirect_stdout(output), reusing(penstock_spark):
            code = main(["run", str(file)])
        assert (code, first.result()) == (141, '{"id":0}\n')
    assert "the reader of standard output has ended" in capsys.readouterr().err


def _first_line(descriptor: int) -> str:
    with os.fdopen(descriptor) as pipe:
        return pipe.readline()
