"""Batches of updating queries by the plans of earlier batches, against DuckDB over all rows."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock import app
from penstock.engine.updating.reusable_changes import ReusableChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.updating.batch import UpdatingBatch

pytestmark = pytest.mark.spark

QUERIES = {
    "groups": (
        "k",
        "SELECT k, max(m) AS m, sum(n) AS n, sum(q) AS q FROM (SELECT k, g, max(x) AS m, "
        "count(*) AS n, sum(60 DIV (x + 1)) AS q FROM a GROUP BY k, g) GROUP BY k",
    ),
    "ranked": (
        "k, place",
        "SELECT k, x, place FROM (SELECT k, x, row_number() OVER "
        "(PARTITION BY k ORDER BY x DESC, id) AS place FROM a) WHERE place <= 2",
    ),
    "joined": (
        "g",
        "SELECT b.g, b.y, t.n FROM (SELECT g, max(y) AS y FROM b GROUP BY g) b "
        "LEFT JOIN (SELECT g, count(*) AS n FROM a WHERE x > 3 GROUP BY g) t ON b.g = t.g",
    ),
}
EXPECTED = QUERIES | {
    "groups": (
        "k",
        QUERIES["groups"][1].replace("DIV", "//").replace("FROM a", "FROM a WHERE x >= 0"),
    )
}
FAILING = 4
"""A batch by earlier plans that has a row on which SQL fails."""
PIPELINE = """\
name: reused
runtime: {state: state}
sources:
  a:
    {type: files, path: a, watch: true, max_files: 1, order: name, format: json,
      schema: "id INT, k STRING, g INT, x INT, at TIMESTAMP"}
  b:
    {type: files, path: b, watch: true, max_files: 1, order: name, format: json,
      schema: "g INT, y INT"}
transforms:
"""


@dataclass
class Applied:
    """The batches that were computed by the plans of earlier ones."""

    batches: list[int]


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Applied]:
    found, apply = Applied([]), ReusableChanges.apply

    def counted(self: ReusableChanges, updating: UpdatingBatch, root: DataFrame) -> Any:
        receipts = apply(self, updating, root)
        found.batches += [] if receipts is None else [updating.number]
        return receipts

    monkeypatch.setattr(ReusableChanges, "apply", counted)
    yield found


def test_results_are_those_of_all_rows(
    tmp_path: Path, penstock_spark: SparkSession, applied: Applied
) -> None:
    """With a restart in the middle, after which the first batch makes the plans anew."""
    dice = random.Random(5)
    transforms = "".join(f"  {n}: {{type: sql, sql: '{q}'}}\n" for n, (_, q) in QUERIES.items())
    sinks = "".join(
        f"  {name}_sink: {{type: sqlite, from: {name}, path: out.db, table: {name}, "
        f"mode: upsert, primary_key: [{key}]}}\n"
        for name, (key, _) in QUERIES.items()
    )
    (tmp_path / "reused.yaml").write_text(f"{PIPELINE}{transforms}sinks:\n{sinks}")
    rows: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    for first, last in ((0, 3), (3, 6)):
        for number in range(first, last):
            _add_files(tmp_path, number, dice, rows)
        options = app.RunOptions(until="caught_up")
        session = penstock_spark.newSession()
        assert not app.run(tmp_path / "reused.yaml", spark=session, options=options).errors
    a = tmp_path / "a.json"
    a.write_text("\n".join(map(json.dumps, rows["a"])))
    b = tmp_path / "b.json"
    b.write_text("\n".join(map(json.dumps, rows["b"])))
    with duckdb.connect() as duck, sqlite3.connect(tmp_path / "out.db") as out:
        duck.execute(
            f"CREATE VIEW a AS FROM read_json('{a}'); CREATE VIEW b AS FROM read_json('{b}')"
        )
        for name, (_, sql) in EXPECTED.items():
            expected = sorted(duck.execute(sql).fetchall(), key=repr)
            columns = ", ".join(column[0] for column in duck.description or ())
            assert sorted(out.execute(f"SELECT {columns} FROM {name}"), key=repr) == expected, name
    assert sorted(applied.batches) == [2, 2, 4, 4, 5, 5]


def _add_files(
    directory: Path, number: int, dice: random.Random, rows: dict[str, list[dict[str, Any]]]
) -> None:
    """Adds a file of each source."""
    added = {
        "a": [
            {
                "id": 100 * number + row, "k": dice.choice("uvw"), "g": dice.randrange(5),
                "x": dice.randrange(9), "at": f"2024-01-01T00:00:{row:02}Z",
            }
            for row in range(12)
        ],
        "b": [{"g": dice.randrange(7), "y": dice.randrange(50)} for _ in range(4)],
    }  # fmt: skip
    if number == FAILING:
        added["a"][3]["x"] = -1
    for name, records in added.items():
        (directory / name).mkdir(exist_ok=True)
        (directory / name / f"{number}.json").write_text("\n".join(map(json.dumps, records)))
        rows[name] += records
