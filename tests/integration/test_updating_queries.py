"""Updating queries over random changes, whose folded changelog equals DuckDB's answer.

Each query is computed for several independent sets of rows at once: the column `g`, which all keys
contain, is the number of the set. `python tests/integration/test_updating_queries.py --sets N
--seed S` computes other sets.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.build import Builder

pytestmark = pytest.mark.spark

SETS = 13
BATCHES = 3
A, B = "g INT, id INT, k INT, x INT, s STRING, op STRING", "g INT, id INT, k INT, y INT"
PIPELINE = """\
name: p
sources:
  a:
    {{type: files, path: a, watch: true, format: json, operation_column: op, primary_key: id,
      schema: "{a}"}}
  b: {{type: files, path: b, watch: true, format: json, schema: "{b}"}}
transforms:
  {view}
  result:
    type: sql
    sql: |
      {sql}
sinks:
  out: {{type: files, from: result, path: out, format: debezium_json}}
"""
QUERIES: dict[str, str | dict[str, str]] = yaml.safe_load(
    Path(__file__).with_name("updating_queries.yaml").read_text("utf-8")
)


@dataclass
class Tables:
    """Random changes of both sources: `a` gets inserts, updates and deletes, `b` only rows."""

    chance: random.Random
    sets: int
    rows: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    appended: list[tuple[Any, ...]] = field(default_factory=list)

    def next_batch(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Returns the changes of the sources in a batch."""
        changes, added = [], []
        for number in range(self.sets):
            changes += [self._change(number) for _ in range(self.chance.randrange(6))]
            for _ in range(self.chance.randrange(3)):
                id_ = len(self.appended)
                added.append((number, id_, self._key(), self.chance.randrange(10)))
                self.appended.append(added[-1])
        return changes, added

    def _change(self, number: int) -> tuple[Any, ...]:
        id_ = self.chance.randrange(6) + 10 * number
        row = (number, id_, self._key(), self._number(), self.chance.choice("uvw"))
        if self.chance.random() < 0.25:
            self.rows.pop((number, id_), None)
            return (number, id_, None, None, None, "d")
        operation = "u" if (number, id_) in self.rows else "i"
        self.rows[number, id_] = row
        return (*row, operation)

    def _key(self) -> int | None:
        return self.chance.choice((1, 1, 2, 3, None))

    def _number(self) -> int | None:
        return self.chance.choice((*range(10), None))

    def expected(self, sql: str, view: str | None) -> Counter[tuple[Any, ...]]:
        """Returns DuckDB's answer over the current rows. `view` is the query of the view `v`."""
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE a (g INT, id INT, k INT, x INT, s TEXT)")
            connection.execute("CREATE TABLE b (g INT, id INT, k INT, y INT)")
            for name, rows in (("a", list(self.rows.values())), ("b", self.appended)):
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            if view is not None:
                connection.execute(f"CREATE VIEW v AS {view}")
            return Counter(map(_plain, connection.execute(sql).fetchall()))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a row with numbers of equal types: DuckDB sums as HUGEINT, Spark as BIGINT."""
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


@pytest.fixture(scope="module", autouse=True)
def one_partition(penstock_spark: SparkSession) -> Iterator[None]:
    """Tasks cost more than rows here."""
    previous = penstock_spark.conf.get("spark.sql.shuffle.partitions")
    penstock_spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    penstock_spark.conf.set("spark.sql.shuffle.partitions", previous or "2")


@pytest.mark.parametrize("name", QUERIES)
def test_folded_changes_are_the_answer_of_duckdb(
    name: str, tmp_path: Path, penstock_spark: SparkSession
) -> None:
    check(QUERIES[name], tmp_path, penstock_spark, random.Random(name), SETS)


def check(
    query_or_view: str | dict[str, str],
    directory: Path,
    spark: SparkSession,
    chance: random.Random,
    sets: int,
) -> None:
    """Computes a query batch by batch, and compares the folded changes after each batch."""
    from penstock import app
    from penstock.engine.build import Builder

    parts = {"sql": query_or_view} if isinstance(query_or_view, str) else query_or_view
    sql, view = parts["sql"], parts.get("view")
    transform = "" if view is None else f'v: {{type: sql, sql: "{view}"}}'
    (directory / "p.yaml").write_text(PIPELINE.format(sql=sql, view=transform, a=A, b=B))
    for name in "ab":
        (directory / name).mkdir(exist_ok=True)
    plan = app.plan(directory / "p.yaml")
    (query,) = plan.queries
    assert query.updating
    builder = Builder(plan, spark)
    tables, folded = Tables(chance, sets), Counter[tuple[Any, ...]]()
    for number in range(BATCHES):
        _fold(folded, _changes(builder, directory, number, *tables.next_batch()))
        assert Counter(map(_plain, folded.elements())) == tables.expected(sql, view), (
            f"batch {number}"
        )


def _changes(
    builder: Builder, directory: Path, number: int, changes: list[Any], added: list[Any]
) -> list[tuple[Any, ...]]:
    """Returns the rows of a batch, whose last column is the operation."""
    from penstock.engine.sources.merged import merge
    from penstock.engine.updating.batch import UpdatingBatch
    from penstock.engine.updating.files import OperatorStateDirectory

    (query,) = builder.plan.queries
    directory_of_state = OperatorStateDirectory(directory / "state", 4)
    version = directory_of_state.before(number)
    updating = UpdatingBatch(
        builder.plan, builder.session, directory_of_state, number, number, version
    )
    schema = {
        "a": "g INT, id INT, k INT, x INT, s STRING, op STRING",
        "b": "g INT, id INT, k INT, y INT",
    }
    frames = {
        name: builder.session.createDataFrame(rows, schema[name]).coalesce(1)
        for name, rows in (("a", changes), ("b", added))
        if name in query.stream_nodes
    }
    root = merge(frames) if query.merged else next(iter(frames.values()))
    output = replace(builder, updating=updating).build_batch(query, root)["result"]
    rows = [tuple(row) for row in output.collect()]
    updating.commit()
    updating.release()
    return rows


def _fold(folded: Counter[tuple[Any, ...]], changes: list[tuple[Any, ...]]) -> None:
    """Applies changes to a multiset of rows. Each row that is retracted must be there."""
    for row in changes:
        *values, operation = row
        if operation in ("i", "u"):
            folded[tuple(values)] += 1
        else:
            folded[tuple(values)] -= 1
    assert not [row for row, count in folded.items() if count < 0]
    for row in [row for row, count in folded.items() if not count]:
        del folded[row]


def main() -> None:
    """Runs all queries over other sets of rows."""
    import tempfile

    from penstock.engine.spark_session.session import session
    from penstock.engine.spark_session.settings import SessionSettings

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with session(SessionSettings()) as spark:
        for name, sql in QUERIES.items():
            with tempfile.TemporaryDirectory() as directory:
                chance = random.Random(f"{name} {options.seed}")
                check(sql, Path(directory), spark, chance, options.sets)
            print(f"{name}: {options.sets} sets, {BATCHES} batches: as DuckDB")


if __name__ == "__main__":
    main()
