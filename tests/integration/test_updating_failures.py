"""Rows on which SQL of updating transforms fails: dead letters, and the other rows are counted."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from pipelines import Row, Workspace, dump

from penstock.core.errors import StateError
from penstock.plan.model import Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.stop import Stopped

pytestmark = pytest.mark.spark

SOURCES = """\
runtime: {partitions: 1}
sources:
  orders:
    type: files
    path: orders/*.jsonl
    order: name
    max_files: 1
    watch: true
    schema: id LONG, city STRING, x LONG, text STRING
"""
PRICES = """\
  prices:
    type: files
    path: prices/*.jsonl
    order: name
    max_files: 1
    watch: true
    schema: y LONG, price LONG
"""
BATCHES: list[list[Row]] = [
    [
        {"id": 1, "city": "Oslo", "x": 1, "text": "1"},
        {"id": 2, "city": "Oslo", "x": 0, "text": "2"},
        {"id": 3, "city": "Rome", "x": 5, "text": "x"},
    ],
    [
        {"id": 4, "city": "Rome", "x": 5, "text": "4"},
        {"id": 5, "city": "Oslo", "x": 10, "text": "1"},
        {"id": 6, "city": "Oslo", "x": 2, "text": "1"},
    ],
]
BY_ZERO, NO_NUMBER = "divide-by-zero", "cast-invalid-input"
Values = tuple[object, ...]


def pipeline(
    queries: Mapping[str, str], sources: str = SOURCES, outputs: Collection[str] = ()
) -> str:
    """Returns a pipeline with a sink of changes for each query, or for `outputs`."""
    transforms = "".join(
        f"  {name}: {{type: sql, sql: {json.dumps(sql)}}}\n" for name, sql in queries.items()
    )
    sinks = "".join(
        f"  {name}_out: {{type: files, from: {name}, path: {name}, format: debezium_json}}\n"
        for name in outputs or queries
    )
    return f"{sources}transforms:\n{transforms}sinks:\n{sinks}"


def table(workspace: Workspace, name: str) -> list[Values]:
    """Returns the rows that remain after all changes of a directory, in order."""
    return tables(workspace, name)[-1]


def tables(workspace: Workspace, name: str, batches: int = 1) -> list[list[Values]]:
    """Returns the rows that remain after each of the first batches, the last ones after all."""
    rows: Counter[Values] = Counter()
    found: list[list[Values]] = []
    files = [(_batch(path), path) for path in (workspace.root / name).glob("part-*")]
    for number, path in sorted(files):
        found += [_remaining(rows)] * (min(number, batches - 1) - len(found))
        for line in path.read_text("utf-8").splitlines():
            change = json.loads(line)
            for side, weight in (("before", -1), ("after", 1)):
                if change[side] is not None:
                    rows[tuple(change[side].values())] += weight
    return [*found, *[_remaining(rows)] * (batches - len(found))]


def _batch(path: Path) -> int:
    return int(path.name.split("-")[-2])


def _remaining(rows: Counter[Values]) -> list[Values]:
    assert all(count >= 0 for count in rows.values()), rows
    return sorted(rows.elements(), key=str)


def put_orders(workspace: Workspace, *batches: list[Row], first: int = 0) -> None:
    for number, batch in enumerate(batches, first):
        workspace.put(f"orders/{number}.jsonl", map(dump, batch))


def dead_letters(workspace: Workspace) -> dict[str, list[tuple[object, str]]]:
    """Returns the dead letters of each node: their IDs or cities, and their codes."""
    found: dict[str, list[tuple[object, str]]] = {}
    for letter in workspace.dead_letters():
        row = json.loads(letter["payload"])
        found.setdefault(letter["node"], []).append(
            (row.get("id", row.get("city")), letter["code"])
        )
    return {node: sorted(each, key=str) for node, each in found.items()}


def test_rows_fail_below_the_state(workspace: Workspace) -> None:
    put_orders(workspace, *BATCHES)
    workspace.put("prices/0.jsonl", [dump({"y": 2, "price": 7}), dump({"y": 1, "price": 8})])
    workspace.run(
        pipeline(
            {
                "sums": "SELECT city, count(*) AS n, sum(10 DIV x) AS total "
                "FROM orders GROUP BY city",
                "totals": "SELECT sum(100 DIV (total - 16)) AS s FROM sums",
                "kept": "SELECT id, city AS place FROM orders",
                "pairs": "SELECT id, n FROM kept JOIN sums ON place = city",
                "casts": "SELECT CAST(text AS INT) AS k, count(*) FILTER (WHERE 10 DIV x > 1) AS n "
                "FROM orders WHERE id > 0 GROUP BY 1",
                "joined": "SELECT id, price FROM orders LEFT JOIN prices ON 10 DIV x = y",
                "halves": "SELECT 10 DIV q AS h, count(*) AS n FROM "
                "(SELECT x AS q FROM orders WHERE id < 4 "
                "UNION ALL SELECT x + 1 FROM orders WHERE id < 4) GROUP BY 1",
            },
            SOURCES + PRICES,
            ("totals", "pairs", "casts", "joined", "halves"),
        ),
        until="caught_up",
    )
    assert table(workspace, "totals") == [(-8,)]
    assert table(workspace, "pairs") == [(1, 3), (2, 3), (3, 2), (4, 2), (5, 3), (6, 3)]
    assert table(workspace, "casts") == [(1, 2), (4, 1)]
    assert table(workspace, "joined") == [(1, None), (3, 7), (4, 7), (5, 8), (6, None)]
    assert table(workspace, "halves") == [(1, 1), (10, 1), (2, 1), (5, 1)]
    assert dead_letters(workspace) == {
        "sums": [(2, BY_ZERO)],
        "totals": [("Oslo", BY_ZERO)],
        "casts": [(2, BY_ZERO), (3, NO_NUMBER)],
        "joined": [(2, BY_ZERO)],
        "halves": [(2, BY_ZERO)],
    }


def test_rows_fail_between_updating_transforms(workspace: Workspace) -> None:
    """Each transform below fails on rows of an aggregate or of a join."""
    queries = {
        "counts": "SELECT city, count(*) AS n, max(text) AS t FROM orders GROUP BY city",
        "large": "SELECT city, n FROM counts WHERE 10 DIV (n - 1) > 0",
        "cities": "SELECT count(*) AS n FROM large",
        "ratios": "SELECT city, 10 DIV (n - 1) AS r FROM counts",
        "pairs": "SELECT id, text, n FROM orders JOIN counts USING (city)",
        "casts": "SELECT n, sum(CAST(text AS INT)) AS total FROM pairs GROUP BY n",
    }
    text = pipeline(queries, outputs=("counts", "large", "cities", "ratios", "casts"))
    text = text.replace(
        "sinks:", "  kept: {type: filter, from: counts, where: 10 DIV (n - 1) > 5}\nsinks:"
    )
    text += "  kept_out: {type: files, from: kept, path: kept, format: debezium_json}\n"
    put_orders(workspace, *BATCHES)
    workspace.run(text, until="caught_up")
    assert table(workspace, "counts") == [("Oslo", 4, "2"), ("Rome", 2, "x")]
    assert table(workspace, "large") == [("Oslo", 4), ("Rome", 2)]
    assert table(workspace, "cities") == [(2,)]
    assert table(workspace, "ratios") == [("Oslo", 3), ("Rome", 10)]
    assert table(workspace, "casts") == [(2, 4), (4, 5)]
    assert table(workspace, "kept") == [("Rome", 2, "x")]
    by_city = [("Rome", BY_ZERO)]
    assert dead_letters(workspace) == {
        "large": by_city,
        "ratios": by_city,
        "kept": by_city,
        "casts": [(3, NO_NUMBER), (3, NO_NUMBER)],
    }


GROUPS: list[list[Row]] = [
    [
        {"id": 1, "city": "Oslo", "x": 2, "text": "1"},
        {"id": 2, "city": "Rome", "x": 6, "text": "2"},
    ],
    [{"id": 3, "city": "Oslo", "x": 4, "text": "x"}],
    [
        {"id": 4, "city": "Oslo", "x": 1, "text": "2"},
        {"id": 5, "city": "Rome", "x": 0, "text": "2"},
    ],
]
RATIO = "10 DIV (sum(x) - 6)"


def test_groups_fail(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of a failing group is retracted, and added when the group no longer fails."""
    queries = {
        "sums": f"SELECT city, {RATIO} AS q FROM orders GROUP BY city",
        "totals": "SELECT sum(q) AS total FROM sums",
        "distinct": f"SELECT city, {RATIO} AS q, count(DISTINCT text) AS d FROM orders "
        "GROUP BY city",
        "large": f"SELECT city, count(*) AS n FROM orders GROUP BY city HAVING {RATIO} < 20",
        "several": "SELECT city, CAST(max(text) AS INT) AS n, if(count(*) > 1 AND city = 'Rome', "
        "raise_error(city), city) AS name FROM orders GROUP BY city",
        "nested": f"SELECT q, count(*) AS n FROM (SELECT city, {RATIO} AS q FROM orders "
        "GROUP BY city) GROUP BY q HAVING 1 DIV (q + 2) >= 0",
        "places": "SELECT id, 10 DIV (place - 2) AS p FROM (SELECT id, row_number() OVER "
        "(PARTITION BY city ORDER BY id DESC) AS place FROM orders WHERE x < 5)",
        "joined": "SELECT id, 10 DIV (x - price) AS d FROM orders LEFT JOIN prices ON x = y",
    }
    workspace.put("prices/0.jsonl", [dump({"y": 2, "price": 7}), dump({"y": 1, "price": 1})])
    text = pipeline(queries, SOURCES + PRICES)
    interrupted: set[str] = set()
    ended = BatchEvents.on_end

    def interrupt(self: BatchEvents, query: Query, number: int) -> None:
        if number == 1 and query.name not in interrupted:
            interrupted.add(query.name)
            raise Stopped
        ended(self, query, number)

    monkeypatch.setattr(BatchEvents, "on_end", interrupt)
    put_orders(workspace, *GROUPS[:2])
    workspace.run(text, until="caught_up")
    assert interrupted
    put_orders(workspace, GROUPS[2], first=2)
    workspace.run(text, until="caught_up")
    found = {name: tables(workspace, name, len(GROUPS)) for name in queries}
    assert found["sums"] == [[("Oslo", -2)], [], [("Oslo", 10)]]
    assert found["totals"] == [[(-2,)], [(None,)], [(10,)]]
    assert found["distinct"] == [[("Oslo", -2, 1)], [], [("Oslo", 10, 3)]]
    assert found["large"] == [[("Oslo", 1)], [], [("Oslo", 3)]]
    kept = ("Rome", 2, "Rome")
    assert found["several"] == [[("Oslo", 1, "Oslo"), kept], [kept], []]
    assert found["nested"] == [[], [], [(10, 1)]]
    assert found["places"] == [
        [(1, -10)], [(3, -10)], [(1, 10), (4, -10), (5, -10)]
    ]  # fmt: skip
    assert found["joined"][-1] == [(1, -2), (2, None), (3, None), (5, None)]
    oslo, rome = ("Oslo", BY_ZERO), ("Rome", BY_ZERO)
    assert dead_letters(workspace) == {
        "sums": [oslo, rome],
        "distinct": [oslo, rome],
        "large": [oslo, rome, rome],
        "several": [("Oslo", NO_NUMBER)] * 2 + [("Rome", "user-raised-exception")],
        "nested": [oslo, oslo, rome],
        "places": [(1, BY_ZERO), (3, BY_ZERO)],
        "joined": [(4, BY_ZERO)],
    }
    assert {letter["stage"] for letter in workspace.dead_letters()} == {"output"}
    payloads = [json.loads(letter["payload"]) for letter in workspace.dead_letters()]
    assert {"city": "Oslo", "sum(x)": "6"} in payloads


def test_an_aggregate_overflows(workspace: Workspace) -> None:
    sql = "SELECT city, CAST(sum(DISTINCT CAST(x AS DECIMAL(38, 19))) AS BIGINT) AS q, "
    sql += "count(DISTINCT text) AS d FROM orders GROUP BY city"
    text = pipeline({"sums": sql})
    large = {"city": "Oslo", "x": 2**63 - 1, "text": "7"}
    put_orders(workspace, BATCHES[1][2:], [{"id": 7, **large}, {"id": 8, **large, "x": 2**63 - 2}])
    handle = workspace.start(text, until="caught_up")
    outcome = handle.wait(120)
    assert outcome is not None and outcome.ending == "failed"
    (error,) = outcome.errors.values()
    assert error.code == "arithmetic-overflow"
    assert 'transform "sums"' in error.message and "a row of its result" in error.message
    assert table(workspace, "sums") == [("Oslo", 2, 1)]
    (numbers,) = handle.metrics.snapshot()["queries"].values()
    assert numbers["state_rows"] == 1 and numbers["state_bytes"] > 0
    text = text.replace("sum(", "try_sum(")
    with pytest.raises(StateError, match="has changed"):
        workspace.start(text, until="caught_up").wait(120)
    shutil.rmtree(workspace.root / "sums")
    workspace.run(text, until="caught_up", fresh=True)
    assert table(workspace, "sums") == [("Oslo", None, 2)]
