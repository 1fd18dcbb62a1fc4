"""Updating queries over random changes, whose folded changelog equals DuckDB's answer.

All queries are transforms of one pipeline, computed for several independent sets of rows at once:
the column `g`, which all keys contain, is the number of the set.
`python tests/integration/test_updating_queries.py --sets N --seed S` computes other sets.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
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

SETS, BATCHES = 26, 2
"""Later batches have the plans of the second one. `test_updating_rows.py` and
`test_reusable_changes.py` compute many batches."""
PARTITIONS = 2
A, B = "g INT, id INT, k INT, x INT, s STRING, op STRING", "g INT, id INT, k INT, y INT"
SOURCES = f"""\
name: p
sources:
  a:
    {{type: files, path: a, watch: true, format: json, operation_column: op, primary_key: id,
      schema: "{A}"}}
  b: {{type: files, path: b, watch: true, format: json, schema: "{B}"}}
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

    def expected(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """Returns DuckDB's answers over the current rows."""
        found = {}
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE a (g INT, id INT, k INT, x INT, s TEXT)")
            connection.execute("CREATE TABLE b (g INT, id INT, k INT, y INT)")
            for name, rows in (("a", list(self.rows.values())), ("b", self.appended)):
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            for name, query in QUERIES.items():
                sql, view = _parts(query)
                if view is not None:
                    connection.execute(f"CREATE OR REPLACE VIEW v AS {view}")
                found[name] = Counter(map(_plain, connection.execute(sql).fetchall()))
        return found


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a row with numbers of equal types: DuckDB sums as HUGEINT, Spark as BIGINT."""
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


@dataclass
class Found:
    """The folded changes of a query after each batch, and DuckDB's answers."""

    folded: list[Counter[tuple[Any, ...]]] = field(default_factory=list)
    expected: list[Counter[tuple[Any, ...]]] = field(default_factory=list)


def compute(
    directory: Path, spark: SparkSession, chance: random.Random, sets: int, batches: int = BATCHES
) -> dict[str, Found]:
    """Computes all queries batch by batch, in one pipeline."""
    from penstock import app
    from penstock.engine.build import Builder

    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")  # as in a run
    session.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))  # tasks cost more than rows
    (directory / "p.yaml").write_text(pipeline())
    for name in "ab":
        (directory / name).mkdir(exist_ok=True)
    builder = Builder(app.plan(directory / "p.yaml"), session)
    assert all(query.updating for query in builder.plan.queries)
    tables, found = Tables(chance, sets), {name: Found() for name in QUERIES}
    folded = {name: Counter[tuple[Any, ...]]() for name in QUERIES}
    for number in range(batches):
        changes = _changes(builder, directory / "state", number, *tables.next_batch())
        expected = tables.expected()
        for index, name in enumerate(QUERIES):
            _fold(folded[name], changes[f"q{index}"])
            found[name].folded.append(Counter(map(_plain, folded[name].elements())))
            found[name].expected.append(expected[name])
    return found


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory, penstock_spark: SparkSession
) -> dict[str, Found]:
    """The changes and the answers of all queries."""
    return compute(tmp_path_factory.mktemp("queries"), penstock_spark, random.Random(1), SETS)


@pytest.mark.parametrize("name", QUERIES)
def test_folded_changes_are_the_answer_of_duckdb(name: str, found: dict[str, Found]) -> None:
    assert found[name].folded == found[name].expected


def pipeline() -> str:
    """Returns a pipeline with a sink for each query."""
    transforms, sinks = "", ""
    for number, query in enumerate(QUERIES.values()):
        sql, view = _parts(query)
        if view is not None:
            transforms += f"  v{number}: {_transform(view)}"
            sql = sql.replace("FROM v ", f"FROM v{number} ")
        transforms += f"  q{number}: {_transform(sql)}"
        sinks += (
            f"  out{number}: {{type: files, from: q{number}, path: out{number}, "
            "format: debezium_json}\n"
        )
    return f"{SOURCES}transforms:\n{transforms}sinks:\n{sinks}"


def _transform(sql: str) -> str:
    return f"{{type: sql, sql: {json.dumps(sql)}}}\n"


def _parts(query: str | dict[str, str]) -> tuple[str, str | None]:
    """Returns the query, and the query of the view `v`."""
    return (query, None) if isinstance(query, str) else (query["sql"], query["view"])


def _changes(
    builder: Builder, directory: Path, number: int, changes: list[Any], added: list[Any]
) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the rows of all transforms in a batch, whose last column is the operation."""
    from penstock.engine.sources.merged import merge
    from penstock.engine.updating.batch import UpdatingBatch
    from penstock.engine.updating.versions import OperatorStateDirectory

    session, found = builder.session, {}
    sources = {
        name: session.createDataFrame(rows, schema).coalesce(1)
        for name, rows, schema in (("a", changes, A), ("b", added, B))
    }
    for query in builder.plan.queries:
        state = OperatorStateDirectory(directory / query.name, PARTITIONS)
        version = state.before(number)
        updating = UpdatingBatch(builder.plan, session, state, number, number, version)
        root = merge(sources) if query.merged else sources[query.root]
        frames = replace(builder, updating=updating).build_batch(query, root)
        for sink in query.sinks:
            (name,) = builder.plan.nodes[sink].inputs
            found[name] = [tuple(row) for row in frames[name].collect()]
        updating.commit()
        updating.release()
    return found


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
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with session(SessionSettings()) as spark, tempfile.TemporaryDirectory() as directory:
        chance = random.Random(options.seed)
        found = compute(Path(directory), spark, chance, options.sets, options.batches)
    for name, each in found.items():
        assert each.folded == each.expected, name
        print(f"{name}: {options.sets} sets, {options.batches} batches: as DuckDB")


if __name__ == "__main__":
    main()
