"""Rows on which SQL fails, separated from the others in one pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from penstock import app
from penstock.engine.failures import separation
from penstock.engine.failures.bisect import Bisection
from penstock.engine.row_checks.row_checks import ROW, Check, find_checks, number_rows
from penstock.plan.model import Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.outcome import Outcome
from penstock.runtime.state.directory import StateDirectory

pytestmark = pytest.mark.spark

ROWS = [
    (1, 2, "1", [1]),
    (2, 0, "x", [2, 0]),
    (3, None, None, None),
    (4, 4, "y", []),
    (5, 0, "5", [5]),
    (6, -1, "-6", [0]),
]


@dataclass
class Input:
    """The frame that the tables `raw` and `rows` have, with and without numbers."""

    frame: DataFrame
    numbered: DataFrame
    ids: dict[int, int]
    """The ID of each row by its number."""

    def failures(self, frame: DataFrame) -> dict[int, str]:
        """Returns the IDs of failing rows, and the codes of their errors."""
        found: dict[int, str] = {}
        for check in find_checks(frame, self.frame, self.numbered):
            numbers = check.numbers().to_pylist()
            errors = list(check.errors(min(self.ids), max(self.ids)))
            assert [number for number, _ in errors] == numbers
            for number, error in errors:
                found[self.ids[number]] = error.code
        return found


@pytest.fixture(scope="module")
def input_(penstock_spark: SparkSession) -> Iterator[Input]:
    spark = penstock_spark
    frame = spark.createDataFrame(ROWS, "id LONG, n INT, text STRING, items ARRAY<INT>")
    frame.coalesce(1).createOrReplaceTempView("raw")
    frame = spark.table("raw").coalesce(1)
    frame.createOrReplaceTempView("rows")
    names = spark.createDataFrame([(1, "one"), (5, "five")], "k INT, name STRING")
    names.createTempView("names")
    numbered = number_rows(frame)
    yield Input(frame, numbered, {row[ROW]: row["id"] for row in numbered.collect()})
    for view in ("raw", "rows", "names"):
        spark.catalog.dropTempView(view)


BY_ZERO, NO_NUMBER, NO_INDEX = "divide-by-zero", "cast-invalid-input", "invalid-array-index"
SAME_KEY, NULL_KEY = "duplicated-map-key", "null-map-key"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id, 10 / n AS q FROM rows", {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT 10 / n AS q, 10 / n + 1 AS r, n FROM rows", {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT 10 / n AS q FROM rows WHERE n <> 0", {}),
        ("SELECT * FROM rows WHERE 10 / n > 1", {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT * FROM rows WHERE n <> 0 AND 10 / n > 1", {}),
        ("SELECT if(n = 0, 0, 10 / n) AS q FROM rows", {}),
        ("SELECT try_divide(1, n) AS q, cast(text AS INT) AS t FROM rows",
         {2: NO_NUMBER, 4: NO_NUMBER}),
        ("SELECT id, 1 / t AS q FROM (SELECT id, cast(text AS INT) - 5 AS t FROM rows)",
         {2: NO_NUMBER, 4: NO_NUMBER, 5: BY_ZERO}),
        ("WITH t AS (SELECT id, nvl(10 / n, 0) AS q FROM rows) SELECT * FROM t WHERE q > 0",
         {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT id, 10 / item AS q FROM rows LATERAL VIEW explode(items) AS item",
         {2: BY_ZERO, 6: BY_ZERO}),
        ("SELECT explode(sequence(1, cast(text AS INT))) AS e FROM rows",
         {2: NO_NUMBER, 4: NO_NUMBER}),
        ("SELECT items[n] AS item FROM rows WHERE items IS NOT NULL",
         {1: NO_INDEX, 4: NO_INDEX, 6: NO_INDEX}),
        ("SELECT transform(items, item -> 1 / item) AS q FROM rows", {2: BY_ZERO, 6: BY_ZERO}),
        ("SELECT id, 1 / n AS q, name FROM rows LEFT JOIN names ON k = id",
         {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT id, name FROM rows JOIN names ON k = cast(text AS INT)",
         {2: NO_NUMBER, 4: NO_NUMBER}),
        ("SELECT id FROM rows WHERE id IN (SELECT k FROM names) AND n IS NOT NULL", {}),
        ("SELECT sum(1 / n) AS total FROM rows GROUP BY id", {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT id FROM rows ORDER BY 1 / n", {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT sum(1) FILTER (WHERE 1 / n > 0) AS total FROM rows", {2: BY_ZERO, 5: BY_ZERO}),
        ("SELECT sum(1 / n) FILTER (WHERE n > 0) AS total FROM rows", {}),
        ("SELECT map(n, 1, 0, 2) AS m FROM rows", {2: SAME_KEY, 3: NULL_KEY, 5: SAME_KEY}),
        ("SELECT map_concat(map(nvl(text, ''), 1), map('x', 2)) AS m FROM rows", {2: SAME_KEY}),
        ("SELECT map_from_arrays(array(text, 'y'), array(1, 2)) AS m FROM rows",
         {3: NULL_KEY, 4: SAME_KEY}),
        ("SELECT map_from_entries(array(struct(id AS k, n), if(id > 1, NULL, struct(1L AS k, n)))) "
         "AS m FROM rows", {1: SAME_KEY}),
        ("SELECT str_to_map(concat(text, ':1,5:2')) AS m FROM rows", {5: SAME_KEY}),
        ("SELECT transform_keys(map(id, 1, 0L, 2), (k, v) -> if(k = 4, 0L, k)) AS m FROM rows",
         {4: SAME_KEY}),
    ],
)  # fmt: skip
def test_checks_find_exactly_the_failing_rows(
    penstock_spark: SparkSession, input_: Input, sql: str, expected: dict[int, str]
) -> None:
    assert input_.failures(penstock_spark.sql(sql)) == expected


def test_expressions_with_functions_in_python_are_not_checked(input_: Input) -> None:
    twice = udf(lambda number: number, "long")
    assert input_.failures(input_.frame.select(1 / twice("n"), twice("id"))) == {}


PIPELINE = """\
name: shop
sources:
  numbers: {type: generate, rows: 300, fields: {id: sequence}}
  names: {type: files, path: names.json, schema: "k LONG, name STRING", static: true}
transforms:
  named:
    type: sql
    sql: "SELECT id, name FROM numbers LEFT JOIN names ON k = id"
  quotients: {type: sql, sql: "SELECT id, 10 / (id % 10) AS q, name FROM named"}
  kept:
    type: python
    from: quotients
    schema: id LONG, q DOUBLE, name STRING
    per: row
    code: |
      def transform(row):
          if row["id"] == 7:
              raise ValueError("seven")
          return row
  parsed: {type: map, from: kept, set: {q: "cast(replace(id, '9', 'nine') AS INT)"}}
sinks:
  out: {type: files, from: parsed, path: out, format: json}
  plain: {type: files, from: named, path: plain, format: json}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "names.json").write_text('{"k": 11, "name": "eleven"}\n')
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    return tmp_path


def rows(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("*.json*"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def dead_letters(directory: Path) -> dict[tuple[str, str, int], str]:
    """Returns the messages of dead letters by node, code and ID of their payload."""
    table = DeadLetters(StateDirectory(directory / ".penstock" / "shop").dead_letters).read()
    found = {
        (each["node"], each["code"], json.loads(each["payload"])["id"]): each["message"]
        for each in table.to_pylist()
    }
    assert len(found) == table.num_rows
    return found


def test_failing_rows_are_dead_letters_without_a_search_row_by_row(
    directory: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separation, "ROWS_PER_FILE", 20)
    monkeypatch.setattr(Bisection, "remove_failing_rows", lambda *_: pytest.fail("bisected"))
    assert cli(directory, "run", "shop.yaml").returncode == 0
    found = dead_letters(directory)
    by_zero = range(0, 300, 10)
    no_number = [number for number in range(300) if "9" in str(number) and number % 10]
    assert set(found) == {
        *(("quotients", "divide-by-zero", number) for number in by_zero),
        ("kept", "rejected", 7),
        *(("parsed", "cast-invalid-input", number) for number in no_number),
    }
    for number in no_number:
        text = str(number).replace("9", "nine")
        assert found["parsed", "cast-invalid-input", number].startswith(f"The value '{text}' ")
    out = rows(directory / "out")
    bad = {*by_zero, *no_number, 7}
    assert [row["id"] for row in out] == [number for number in range(300) if number not in bad]
    assert all(row["q"] == row["id"] for row in out)
    assert len(rows(directory / "plain")) == 300


def test_rows_that_cannot_be_separated_are_bisected(
    directory: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Check, "errors", lambda *_: iter(()))
    text = PIPELINE.replace("rows: 300", "rows: 11")
    (directory / "shop.yaml").write_text(text)
    assert cli(directory, "run", "shop.yaml").returncode == 0
    assert set(dead_letters(directory)) == {
        ("quotients", "divide-by-zero", 0),
        ("quotients", "divide-by-zero", 10),
        ("kept", "rejected", 7),
        ("parsed", "cast-invalid-input", 9),
    }
    assert [row["id"] for row in rows(directory / "out")] == [1, 2, 3, 4, 5, 6, 8]


def test_a_stop_ends_the_search(
    directory: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:

    def run() -> Outcome:
        return app.run(app.plan(directory / "shop.yaml"), spark=penstock_spark.newSession())

    searched = BatchEvents.on_search

    def stop_and_search(self: BatchEvents, query: Query, number: int) -> None:
        self.stop.request("Ctrl-C")
        searched(self, query, number)

    monkeypatch.setattr(BatchEvents, "on_search", stop_and_search)
    outcome = run()
    assert (outcome.ending, outcome.errors) == ("stopped", {})
    assert dead_letters(directory) == {}
    monkeypatch.undo()
    outcome = run()
    assert (outcome.ending, outcome.errors) == ("complete", {})
    assert len(dead_letters(directory)) == 30 + 1 + 54
