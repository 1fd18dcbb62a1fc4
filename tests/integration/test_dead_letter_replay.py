"""Dead letters of exactly-once pipelines: interrupted replays, resets, failing sinks, files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from test_runs import DIRTY, ORDERS, QUICK, STEPS, Place, ids, order, sink

from command_line import CommandLine
from penstock.control import PipelineControl
from penstock.core.errors import StateError, Transient
from penstock.runtime.dead_letters.replay import Replay
from penstock.runtime.dead_letters.replay_record import ReplayRecord, ReplayResult
from penstock.runtime.dead_letters.store import Collector

pytestmark = pytest.mark.spark

DIVIDE = "transforms:\n  unit: {type: sql, sql: 'SELECT id, price / n AS unit FROM orders'}\n"
DIVIDE_OR_NULL = DIVIDE.replace("price / n", "try_divide(price, n)")
TWO_SINKS = """\
sinks:
  out: {type: files, from: unit, path: out}
  copy: {type: files, from: unit, path: copy}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, penstock_spark: SparkSession) -> Path:
    """Returns the directory of a run with two dead letters, of the orders 2 and 4."""
    place = Place(tmp_path_factory.mktemp("finished"), penstock_spark)
    place.give("a", order(1), order(2, n=0), order(3), order(4, n=0))
    assert place.run(ORDERS, DIVIDE, TWO_SINKS).ending == "complete"
    return place.root


@pytest.fixture
def orders(tmp_path: Path, finished: Path, penstock_spark: SparkSession) -> Place:
    """Returns a copy of the pipeline and its state after that run."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Place(tmp_path, penstock_spark)


def replay(place: Place, *parts: str, select: set[str] | None = None) -> ReplayResult:
    control = PipelineControl.of(place.plan(*parts))
    return control.replay(select, spark=place.spark.newSession())


def dead_letter_of(place: Place, number: int) -> str:
    return next(x["id"] for x in place.dead_letters() if json.loads(x["payload"])["id"] == number)


def test_replay_after_reset_writes_its_rows(orders: Place) -> None:
    replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS)
    orders.run(ORDERS, DIVIDE, TWO_SINKS, fresh=True)
    assert replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS).replayed == 2
    assert ids(orders.rows()) == sorted([1, 2, 3, 4] * 2)
    assert orders.dead_letters() == []


def test_replayed_text_that_is_not_utf8_keeps_its_bytes(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    place = Place(tmp_path, penstock_spark)
    place.give("a", order(1), order(2))
    sql = "SELECT id, CAST(x'61ff' AS STRING) AS t FROM orders"
    cast = f'transforms:\n  unit: {{type: sql, sql: "{sql}"}}\n'
    out = "sinks:\n  out: {type: files, from: unit, path: out%s}\n"
    assert place.run(ORDERS, cast, out % "").ending == "complete"
    assert [letter["code"] for letter in place.dead_letters()] == ["not-utf8"] * 2
    replay(place, ORDERS, cast, out % "")
    assert [(x["code"], x["attempt"]) for x in place.dead_letters()] == [("not-utf8", 2)] * 2
    assert replay(place, ORDERS, cast, out % ", invalid_utf8: replace").replayed == 2
    assert [row["t"] for row in place.rows()] == ["a\ufffd"] * 2
    assert place.dead_letters() == []


class Killed(BaseException):
    """The end of the process."""


def test_killed_replay_is_finished_before_another_selection(
    orders: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ReplayRecord, "mark_written", kill)
        with pytest.raises(Killed):
            replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS)
    assert len(orders.dead_letters()) == 2
    select = {dead_letter_of(orders, 4)}
    result = replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS, select=select)
    assert (result.finished, result.replayed, orders.dead_letters()) == (2, 0, [])
    assert ids(orders.rows()) == ids(orders.rows("copy")) == [1, 2, 3, 4]


def test_replay_killed_between_its_sinks_writes_each_row_once(
    orders: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("penstock.runtime.dead_letters.replay.make_sink_task", kill_second())
        with pytest.raises(Killed):
            replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS, select={dead_letter_of(orders, 2)})
    result = replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS)
    assert (result.finished, result.replayed) == (1, 1)
    assert ids(orders.rows()) == ids(orders.rows("copy")) == [1, 2, 3, 4]


def test_interrupted_replay_that_fails_again_is_an_error(
    orders: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ReplayRecord, "mark_written", kill)
        with pytest.raises(Killed):
            replay(orders, ORDERS, DIVIDE_OR_NULL, TWO_SINKS)
    with pytest.raises(StateError) as caught:
        replay(orders, ORDERS, DIVIDE, TWO_SINKS)
    assert caught.value.code == "unfinished-replay"
    assert len(orders.dead_letters()) == 2


def kill(*_: Any) -> None:
    raise Killed


def kill_second() -> Any:
    from penstock.engine.sinks.sink_rows import make_sink_task

    calls = []

    def make(sink: Any, spool: Any) -> Any:
        calls.append(sink)
        if len(calls) == 2:
            raise Killed
        return make_sink_task(sink, spool)

    return make


def test_failing_sink_of_dead_letters_is_retried(
    tmp_path: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The letters of sources, SQL and Python are in the sink alone."""
    place = Place(tmp_path, penstock_spark)
    place.give("a", *DIRTY)
    place.give("b", order(6), "not json")
    failures = fail_moves(monkeypatch, 3)
    dead_letter = "dead_letter: {type: files, path: dead, format: json}\n"
    outcome = place.run(ORDERS, STEPS, sink("step"), dead_letter, QUICK)
    assert (outcome.ending, len(failures)) == ("complete", 3)
    assert ids(place.rows()) == [1, 5, 6]
    assert place.dead_letters() == []
    assert sorted(row["code"] for row in place.rows("dead")) == [
        "divide-by-zero", "not-json", "not-json", "rejected", "wrong-type",
    ]  # fmt: skip
    assert "header" not in place.rows("dead")[0]


def test_retries_of_a_sink_of_dead_letters_end(
    tmp_path: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, penstock_spark)
    place.give("a", order(1), "not json")
    dead_letter = "dead_letter: {type: files, path: dead, format: json}\n"
    with monkeypatch.context() as patch:
        fail_moves(patch, 1000)
        with pytest.raises(Transient):
            place.run(ORDERS, sink("orders"), dead_letter, QUICK)
    assert place.run(ORDERS, sink("orders"), dead_letter, QUICK).ending == "complete"
    assert [row["code"] for row in place.rows("dead")] == ["not-json"]


def fail_moves(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    """Lets the first writes to the sink of dead letters fail. Returns the batches that failed."""
    failures: list[int] = []
    move = Collector._move

    def fail_first(self: Collector, query: str, number: int, dead_letters: Any) -> None:
        if len(failures) < count:
            failures.append(number)
            raise Transient("could not reach the sink")
        move(self, query, number, dead_letters)

    monkeypatch.setattr(Collector, "_move", fail_first)
    return failures


CSV = """\
  NAME:
    type: files
    path: in/NAME.csv
    format: {type: csv, encoding: ENCODING}
    schema: id LONG, name STRING, price PRICE
"""
ENCODINGS = {"utf8": "utf-8", "latin1": "latin-1", "utf16": "utf-16"}


def test_replay_of_csv_records_without_their_files(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    place = Place(tmp_path, penstock_spark)
    (tmp_path / "in").mkdir()
    sources, sinks = "name: orders\nsources:\n", "sinks:\n"
    for name, encoding in ENCODINGS.items():
        file = tmp_path / "in" / f"{name}.csv"
        file.write_bytes("price,other,id,name\ndear,x,1,café\n".encode(encoding))
        sources += CSV.replace("NAME", name).replace("ENCODING", encoding)
        sinks += f"  to_{name}: {{type: files, from: {name}, path: out_{name}}}\n"
    place.run(sources.replace("PRICE", "DOUBLE"), sinks)
    for name in ENCODINGS:
        (tmp_path / "in" / f"{name}.csv").unlink()
    result = replay(place, sources.replace("PRICE", "STRING"), sinks)
    assert (result.replayed, result.failed) == (len(ENCODINGS), 0)
    for name in ENCODINGS:
        assert place.rows(f"out_{name}") == [{"id": 1, "name": "café", "price": "dear"}]


def test_rows_that_fail_again_are_found_in_one_pass(
    tmp_path: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters of a source and of SQL, which fail in the second transform after the source."""
    place = Place(tmp_path, penstock_spark)
    dead_letters = [
        json.dumps({**order(number, n=number % 2), "price": "x"}) for number in range(8)
    ]
    place.give("a", *dead_letters, *(order(number, n=0) for number in range(8, 20)))
    chain = (
        "transforms:\n  all: {type: sql, sql: 'SELECT * FROM orders'}\n"
        "  unit: {type: sql, sql: 'SELECT id, price / n AS unit FROM all'}\n"
    )
    place.run(ORDERS, chain, sink("unit"))
    assert len(place.dead_letters()) == 20
    attempts = []
    attempt = Replay._attempt
    monkeypatch.setattr(
        Replay,
        "_attempt",
        lambda self, dead_letters: (attempts.append(dead_letters), attempt(self, dead_letters)),
    )
    text = ORDERS.replace("price DOUBLE", "price STRING")
    result = replay(place, text, chain.replace("price / n", "length(price) / n"), sink("unit"))
    assert (result.replayed, result.failed, len(attempts)) == (4, 16, 1)
    assert {(letter["code"], letter["attempt"]) for letter in place.dead_letters()} == {
        ("divide-by-zero", 2)
    }
    assert ids(place.rows()) == [1, 3, 5, 7]


def test_statements_before_the_one_that_failed(cli: CommandLine, tmp_path: Path) -> None:
    tables = (
        "CREATE TABLE orders (id INT, n INT)"
        " WITH (connector = 'files', path = 'orders.jsonl', format = 'json');\n"
        "CREATE TABLE units (id INT, unit DOUBLE)"
        " WITH (connector = 'files', path = 'units', format = 'json');\n"
    )
    (tmp_path / "orders.jsonl").write_text('{"id": 1, "n": 5}\n{"id": 2, "n": 0}\n')
    script = tmp_path / "units.sql"
    script.write_text(f"{tables}INSERT INTO units SELECT id, 10 / n FROM orders;\n")
    assert cli(tmp_path, "run", "units.sql").returncode == 0
    other = "INSERT INTO units SELECT id, n FROM orders WHERE id > 5;\n"
    mended = "INSERT INTO units SELECT id, coalesce(try_divide(10, n), -1) FROM orders;\n"
    script.write_text(tables + other + mended)
    assert "0 dead letters replayed" in cli(tmp_path, "dead", "replay", "units.sql").stdout
    script.write_text(tables + mended)
    assert "1 dead letter replayed" in cli(tmp_path, "dead", "replay", "units.sql").stdout
    lines = "".join(path.read_text() for path in tmp_path.glob("units/part-*")).splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted(row["unit"] for row in rows) == [-1, 2]


def test_replayed_metadata_and_records_without_payload(cli: CommandLine, tmp_path: Path) -> None:
    """The position and the path are in the dead letter. A row of Parquet has no payload."""
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": "bad"}\n{"id": 2}\n')
    pq.write_table(pa.table({"id": ["1", "x"]}), tmp_path / "b.parquet")
    file = tmp_path / "shop.yaml"
    text = """
sources:
  a: {type: files, path: a.jsonl, schema: "id INT",
      metadata: {file: name, line: position, at: modified}}
  b: {type: files, path: b.parquet, schema: "id INT"}
sinks:
  out: {type: files, from: a, path: out, format: json}
  rest: {type: blackhole, from: b}
"""
    file.write_text(text)
    assert cli(tmp_path, "run", "shop.yaml").returncode == 0
    file.write_text(text.replace('a.jsonl, schema: "id INT"', 'a.jsonl, schema: "id STRING"'))
    replayed = cli(tmp_path, "dead", "replay", "shop.yaml")
    first, second = replayed.stdout.splitlines()
    assert (replayed.returncode, first) == (1, "1 dead letter replayed")
    assert second.startswith("1 of b not replayed: the dead letters have no payload that can")
    rows = [json.loads(line) for path in (tmp_path / "out").glob("*.jsonl")
            for line in path.read_text().splitlines()]  # fmt: skip
    assert [row for row in rows if row["id"] == "bad"] == [
        {"id": "bad", "file": "a.jsonl", "line": 2}
    ]
    (letter,) = json.loads(cli(tmp_path, "dead", "list", "shop.yaml", "--json").stdout)["letters"]
    assert (letter["node"], letter["attempt"]) == ("b", 1)
