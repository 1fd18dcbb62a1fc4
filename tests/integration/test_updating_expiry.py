"""Expiry of rows in updating queries, in simulated times, against the rows that remain."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.build import Builder

pytestmark = pytest.mark.spark

TTL, BATCHES = 2, 6
"""The time to live in milliseconds. A batch takes one millisecond."""
QUERIES = {
    "groups_of_groups": "SELECT n, m, count(*) AS keys FROM "
    "(SELECT k, count(*) AS n, max(x) AS m FROM a GROUP BY k) GROUP BY n, m",
    "pairs": "SELECT l.id, r.id AS other FROM a l LEFT JOIN a r ON l.k = r.k AND l.x < r.x",
    "groups_of_rows": "SELECT n, sum(k) AS keys FROM "
    "(SELECT k, count(*) AS n, max(y) AS m FROM b GROUP BY k) GROUP BY n",
    "merged": "SELECT k, sum(n) AS n FROM "
    "(SELECT k, 1 AS n FROM a UNION ALL SELECT k, 10 AS n FROM b) GROUP BY k",
}
PIPELINE = """\
name: p
runtime: {updating_ttl: 2ms}
sources:
  a: {type: files, path: a, watch: true, format: json, operation_column: op, primary_key: id,
      schema: "id INT, k INT, x INT, op STRING"}
  b: {type: files, path: b, watch: true, format: json, schema: "k INT, y INT"}
"""


@dataclass
class Tables:
    """The rows that have not expired: of `a` by primary key, of `b` by `k`, with their times."""

    chance: random.Random
    a: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    b: dict[int, tuple[list[int], int]] = field(default_factory=dict)

    def next_batch(self, time: int) -> tuple[list[Any], list[Any]]:
        """Returns the changes of both sources in a batch. Half of them repeat a row."""
        changes: dict[int, Any] = {}
        for id_ in self.chance.sample(range(8), self.chance.randrange(5)):
            k, x = self.chance.randrange(3), self.chance.randrange(4)
            if id_ in self.a and self.chance.random() < 0.5:
                k, x, _ = self.a[id_]
            changes[id_] = (id_, k, x, "d" if self.chance.random() < 0.1 else "u")
        added = [(self.chance.randrange(4), n) for n in range(self.chance.randrange(3))]
        self._apply(changes.values(), added, time)
        return list(changes.values()), added

    def _apply(self, changes: Iterable[Any], added: Iterable[Any], time: int) -> None:
        for id_, k, x, operation in changes:
            self.a.pop(id_, None)
            if operation == "u":
                self.a[id_] = (k, x, time)
        for k, y in added:
            values, _ = self.b.get(k, ([], 0))
            self.b[k] = ([*values, y], time)
        self.a = {id_: row for id_, row in self.a.items() if row[2] >= time - TTL}
        self.b = {k: rows for k, rows in self.b.items() if rows[1] >= time - TTL}

    def expected(self, sql: str) -> Counter[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE a (id INT, k INT, x INT)")
            connection.execute("CREATE TABLE b (k INT, y INT)")
            for id_, (k, x, _) in self.a.items():
                connection.execute("INSERT INTO a VALUES (?, ?, ?)", [id_, k, x])
            for k, (values, _) in self.b.items():
                for y in values:
                    connection.execute("INSERT INTO b VALUES (?, ?)", [k, y])
            return Counter(connection.execute(sql).fetchall())


def test_rows_expire_in_all_operators_alike(tmp_path: Path, penstock_spark: SparkSession) -> None:
    from penstock import app
    from penstock.engine.build import Builder

    session = penstock_spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")  # as in a run
    session.conf.set("spark.sql.shuffle.partitions", "1")
    transforms = "".join(f'  {n}: {{type: sql, sql: "{sql}"}}\n' for n, sql in QUERIES.items())
    sinks = "".join(
        f"  {n}_out: {{type: files, from: {n}, path: {n}, format: debezium_json}}\n"
        for n in QUERIES
    )
    (tmp_path / "p.yaml").write_text(f"{PIPELINE}transforms:\n{transforms}sinks:\n{sinks}")
    builder = Builder(app.plan(tmp_path / "p.yaml"), session)
    tables = Tables(random.Random(264))
    folded: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in QUERIES}
    expired = 0
    for number in range(BATCHES):
        before = len(tables.a) + len(tables.b)
        batch = tables.next_batch(number)
        expired += len(tables.a) + len(tables.b) < before
        for name, rows in _compute(builder, tmp_path / "state", number, *batch).items():
            for *values, operation in rows:
                folded[name][tuple(values)] += 1 if operation in ("i", "u") else -1
            assert all(count >= 0 for count in folded[name].values()), (name, number)
            assert +folded[name] == tables.expected(QUERIES[name]), (name, number)
    assert expired


def _compute(
    builder: Builder, directory: Path, number: int, changes: list[Any], added: list[Any]
) -> dict[str, list[Any]]:
    """Returns the changes of all results in a batch."""
    from penstock.engine.sources.merged import merge
    from penstock.engine.updating.batch import UpdatingBatch
    from penstock.engine.updating.versions import OperatorStateDirectory

    session, found = builder.session, {}
    rows = {
        "a": session.createDataFrame(changes, "id INT, k INT, x INT, op STRING").coalesce(1),
        "b": session.createDataFrame(added, "k INT, y INT").coalesce(1),
    }
    for query in builder.plan.queries:
        state = OperatorStateDirectory(directory / query.name, 2)
        version = state.before(number)
        updating = UpdatingBatch(builder.plan, session, state, number, number, version)
        root = merge(rows) if query.merged else rows[query.root]
        frames = replace(builder, updating=updating).build_batch(query, root)
        for sink in query.sinks:
            (name,) = builder.plan.nodes[sink].inputs
            found[name] = frames[name].collect()
        updating.commit()
        updating.release()
    return found
