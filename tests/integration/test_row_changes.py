"""Row operations and upserts, from a source to a sink."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from change_events import interleaved, random_events
from penstock import app
from penstock.connectors import memory
from penstock.plan.model import Plan
from penstock.runtime.dead_letters.store import DeadLetters
from servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHANGES = [
    {"op": "i", "id": 1, "name": "a"}, {"op": "i", "id": 2, "name": "b"},
    {"op": "ub", "id": 1, "name": "a"}, {"op": "u", "id": 1, "name": "a2"},
    {"op": "i", "id": 3, "name": "c"}, {"op": "x", "id": 2, "name": "bad"},
    {"op": "d", "id": 2, "name": None}, {"op": "i", "id": 4, "name": "d"},
    {"op": "d", "id": 3, "name": None}, {"op": "i", "id": 3, "name": "c2"},
    {"op": "ub", "id": 4, "name": "d"}, {"op": "u", "id": 4, "name": "d2"},
]  # fmt: skip

# Of two partitions, the first one ends between the rows of an update that takes over a key.
MOVES = [
    {"op": "i", "id": 1, "name": "m"}, {"op": "i", "id": 3, "name": "q"},
    {"op": "ub", "id": 1, "name": "m"}, {"op": "u", "id": 2, "name": "m"},
    {"op": "ub", "id": 3, "name": "q"}, {"op": "u", "id": 1, "name": "q"},
    *({"op": "i", "id": number, "name": "x"} for number in range(4, 8)),
]  # fmt: skip

CONFLICTS = {"first": {"on_conflict": "nothing"}, "less": {"update_where": {"name": "<"}}}


def run(directory: Path, spark: SparkSession, **parts: dict[str, dict[str, Any]]) -> Plan:
    """Runs a pipeline of these sources, transforms and sinks to its end."""
    path = directory / "changes.json"
    path.write_text(
        json.dumps({"name": "changes", "runtime": {"state": str(directory / "state")}, **parts})
    )
    plan = app.plan(path)
    outcome = app.run(plan, spark=spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    return plan


def dead_letters(plan: Plan) -> list[dict[str, Any]]:
    return list(DeadLetters(plan.state / "dead_letters").read().to_pylist())


def table(directory: Path, name: str) -> list[dict[str, Any]]:
    """Returns the rows of a sink in memory."""
    return list(memory.tables[f"{directory.name} {name}"].to_pylist())


def in_memory(directory: Path, name: str, from_: str, **more: Any) -> dict[str, Any]:
    """Returns the options of a sink in memory."""
    return {"type": "memory", "from": from_, "name": f"{directory.name} {name}", **more}


def source_of(payloads: list[str], batches: int, format_: Any) -> dict[str, Any]:
    """Returns the source of a table that payloads change in a number of batches."""
    return {
        "type": "memory",
        "payloads": payloads,
        "batches": batches,
        "schema": "id INT NOT NULL, name STRING, number INT",
        "primary_key": "id",
        "format": format_,
    }


def test_rows_are_applied_in_source_order(tmp_path: Path, penstock_spark: SparkSession) -> None:
    numbers = [{"id": number % 7, "name": str(number)} for number in range(200)]
    inputs: dict[str, dict[str, Any]] = {
        "last": {"rows": numbers, "batches": 2, "schema": "id INT, name STRING"},
        # Of four partitions, the first one ends between the rows of an update.
        **{f"changes{batches}": {"rows": CHANGES, "batches": batches, "operation_column": "op",
                                 "schema": "op STRING, id INT, name STRING",
                                 "partitions": 5 - batches}
           for batches in (1, 3)},
        "moves": {"rows": MOVES, "partitions": 2, "operation_column": "op",
                  "schema": "op STRING, id INT, name STRING"},
    }  # fmt: skip
    plan = run(
        tmp_path, penstock_spark,
        sources={name: {"type": "memory", "partitions": 3, "primary_key": "id", **options}
                 for name, options in inputs.items()},
        transforms={f"kept_{name}": {"type": "filter", "from": name, "where": "id > -1"}
                    for name in inputs},
        sinks={f"out_{name}": in_memory(tmp_path, name, f"kept_{name}", mode="upsert")
               for name in inputs}
        | {f"{condition}_{name}": {"type": "sqlite", "from": f"kept_{name}", "mode": "upsert",
                                   "path": str(tmp_path / f"{name}.db"), "table": condition,
                                   **options}
           for name in ("changes1", "changes3", "moves")
           for condition, options in CONFLICTS.items()},
    )  # fmt: skip
    moved = {1: "q", 2: "m", **dict.fromkeys(range(4, 8), "x")}
    with closing(sqlite3.connect(tmp_path / "moves.db")) as db:
        for condition in CONFLICTS:
            assert dict(db.execute(f"SELECT id, name FROM {condition}")) == moved
    assert {row["id"]: row["name"] for row in table(tmp_path, "moves")} == moved
    for name in ("changes1", "changes3"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db:
            assert dict(db.execute("SELECT id, name FROM first")) == {1: "a", 3: "c2", 4: "d"}
            assert dict(db.execute("SELECT id, name FROM less")) == {1: "a", 3: "c2", 4: "d"}
        rows = table(tmp_path, name)
        assert [*rows[0]] == ["id", "name"]
        assert {row["id"]: row["name"] for row in rows} == {1: "a2", 3: "c2", 4: "d2"}
    found = {row["id"]: row["name"] for row in table(tmp_path, "last")}
    assert found == {number % 7: str(number) for number in range(193, 200)}
    assert len(table(tmp_path, "last")) == 7
    letters = dead_letters(plan)
    assert sorted((each["node"], each["code"]) for each in letters) == [
        (f"{sink}_changes{batches}", "unknown-operation")
        for sink in ("first", "less", "out") for batches in (1, 3)
    ]  # fmt: skip
    for letter in letters:
        assert json.loads(letter["payload"]) == {"op": "x", "id": 2, "name": "bad"}


def conditional_table(
    events: list[dict[str, Any]], options: dict[str, Any]
) -> set[tuple[Any, ...]]:
    """Applies events one after another: a row replaces that of its key only on a condition."""
    table: dict[int, dict[str, Any]] = {}
    for event in events:
        before, after = event.get("before"), event.get("after")
        if before is not None and (after is None or after["id"] != before["id"]):
            table.pop(before["id"], None)
        if after is not None:
            known = table.get(after["id"])
            is_less = (
                "update_where" in options and known is not None and after["name"] < known["name"]
            )
            if known is None or is_less:
                table[after["id"]] = after
    return {(row["id"], row["name"], row["number"]) for row in table.values()}


def test_conditional_upserts_do_not_depend_on_batches(
    tmp_path: Path, penstock_spark: SparkSession, postgres: Postgres
) -> None:
    """Ten histories, interleaved: a batch has from none to a dozen events of each, or all."""
    rng = random.Random(5)
    histories = [random_events(rng, 24, first) for first in range(0, 10_000, 1_000)]
    events = interleaved(rng, histories)
    payloads, sources, sinks = [json.dumps(each) for each in events], {}, {}
    schema = postgres.new_schema()
    targets = {
        "sqlite": {"path": str(tmp_path / "db.sqlite")},
        "duckdb": {"path": str(tmp_path / "db.duckdb")},
        "postgres": postgres.login,
    }
    for batches in (1, 5):
        sources[f"rows{batches}"] = source_of(payloads, batches, "debezium_json")
        for type_, place in targets.items():
            prefix = f"{schema}." if type_ == "postgres" else ""
            for condition, options in CONFLICTS.items():
                name = f"{condition}{batches}"
                sinks[f"{type_}_{name}"] = {
                    "type": type_,
                    "from": f"rows{batches}",
                    "mode": "upsert",
                    **place,
                    "table": f"{prefix}{name}",
                    **options,
                }
    run(tmp_path, penstock_spark, sources=sources, sinks=sinks)
    with (
        closing(sqlite3.connect(tmp_path / "db.sqlite")) as sqlite,
        closing(duckdb.connect(str(tmp_path / "db.duckdb"))) as duck,
        postgres.client() as client,
    ):
        for name in sinks:
            type_, _, table_name = name.partition("_")
            execute = {"sqlite": sqlite.execute, "duckdb": duck.execute, "postgres": client.execute}
            prefix = f"{schema}." if type_ == "postgres" else ""
            found = execute[type_](f"SELECT id, name, number FROM {prefix}{table_name}").fetchall()
            expected = conditional_table(events, CONFLICTS[table_name.rstrip("0123456789")])
            assert len(found) == len(expected) and set(found) == expected, name


def passed(event: dict[str, Any]) -> dict[str, Any] | None:
    """Returns an event as it is below the condition of the next test; None without a row."""
    rows = {name: event.get(name) for name in ("before", "after")}
    rows = {name: row for name, row in rows.items() if row is not None and row["number"] % 3 == 0}
    return {"op": event["op"], **rows} if rows else None


def test_conditional_upserts_of_filtered_changes(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    """A condition drops rows between the row before an update and that after another update."""
    rng = random.Random(7)
    histories = [random_events(rng, 24, first) for first in range(0, 20_000, 1_000)]
    events = [event for history in histories for event in history]
    payloads, sources, sinks = [json.dumps(each) for each in events], {}, {}
    transforms: dict[str, dict[str, Any]] = {}
    for batches in (1, 5):
        format_ = {"type": "debezium_json", "before": "complete"}
        sources[f"rows{batches}"] = source_of(payloads, batches, format_)
        filters = {
            "yaml": {"type": "filter", "from": f"rows{batches}", "where": "number % 3 = 0"},
            "sql": {"type": "sql", "sql": f"SELECT * FROM rows{batches} WHERE number % 3 = 0"},
        }
        for kind, options in filters.items():
            transforms[f"{kind}{batches}"] = options
            for condition, more in CONFLICTS.items():
                name = f"{kind}_{condition}{batches}"
                sinks[name] = {
                    "type": "sqlite", "from": f"{kind}{batches}", "mode": "upsert",
                    "path": str(tmp_path / "db.sqlite"), "table": name, **more,
                }  # fmt: skip
    run(tmp_path, penstock_spark, sources=sources, transforms=transforms, sinks=sinks)
    known = [event for event in map(passed, events) if event is not None]
    with closing(sqlite3.connect(tmp_path / "db.sqlite")) as client:
        for name in sinks:
            found = client.execute(f"SELECT id, name, number FROM {name}").fetchall()
            expected = conditional_table(known, CONFLICTS[name.split("_")[1].rstrip("0123456789")])
            assert len(found) == len(expected) and set(found) == expected, name


def test_a_plan_runs_twice(tmp_path: Path, penstock_spark: SparkSession) -> None:
    rows = [{"id": 1, "name": "a"}]
    plan = run(
        tmp_path, penstock_spark,
        sources={"rows": {"type": "memory", "rows": rows, "primary_key": "id"}},
        sinks={"out": in_memory(tmp_path, "out", "rows", mode="upsert")},
    )  # fmt: skip
    before = {name: dict(vars(node.component)) for name, node in plan.nodes.items()}
    options = app.RunOptions(fresh=True)
    outcome = app.run(plan, spark=penstock_spark.newSession(), options=options)
    assert (outcome.ending, outcome.errors) == ("complete", {})
    assert {name: dict(vars(node.component)) for name, node in plan.nodes.items()} == before


ANN, BOB = {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}
EVENTS = [
    {"op": "r", "after": ANN}, {"op": "c", "after": BOB},
    {"op": "c", "after": {"id": 3, "name": "c"}},
    {"op": "u", "before": ANN, "after": {"id": 1, "name": "hidden"}},
    {"op": "u", "after": {"id": 3, "name": "hidden"}}, {"op": "t"},
    {"op": "d", "before": {"id": 2}}, {"op": "d", "before": {"id": 9}},
    {"op": "c", "after": {"id": 4, "name": "d"}},
    {"op": "u", "before": {"id": 4, "name": "d"}, "after": {"id": 5, "name": "d"}},
    {"op": "c", "after": {"id": 6, "name": "hidden"}},
    {"op": "u", "before": {"id": 6, "name": "hidden"}, "after": {"id": 6, "name": "shown"}},
]  # fmt: skip
KEPT = {5: "D", 6: "SHOWN"}


def payloads() -> list[str]:
    return [json.dumps(event) for event in EVENTS]


def test_a_filter_of_changes_deletes(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """As a filter, as SQL, also with a table expression or a quote; in one batch and in several."""
    sources, transforms, sinks = {}, {}, {}
    for batches in (1, 3):
        rows = f"rows{batches}"
        sources[rows] = {"type": "memory", "payloads": payloads(), "batches": batches,
                         "schema": "id INT NOT NULL, name STRING", "primary_key": "id",
                         "format": "debezium_json"}  # fmt: skip
        transforms |= {
            f"filter{batches}": {"type": "filter", "from": rows, "where": "name <> 'hidden'"},
            f"select{batches}": {"type": "select", "from": f"filter{batches}",
                                 "columns": ["id", "upper(name) AS name"]},
            f"sql{batches}": {
                "type": "sql",
                "sql": f"SELECT id, upper(name) AS name FROM {rows} WHERE name <> 'hidden'",
            },
            f"cte{batches}": {
                "type": "sql",
                "sql": f"WITH some AS (SELECT * FROM {rows} WHERE name <> 'hidden') "
                "SELECT id, upper(some.name) AS name FROM some",
            },
            f"quoted{batches}": {
                "type": "sql",
                "sql": f"SELECT id, upper(name) AS `a``b` FROM {rows} WHERE name <> 'hidden'",
            },
            f"renamed{batches}": {"type": "select", "from": f"quoted{batches}",
                                  "columns": ["id", "`a``b` AS name"]},
        }  # fmt: skip
        for name in (f"select{batches}", f"sql{batches}", f"cte{batches}", f"renamed{batches}"):
            sinks[f"out_{name}"] = in_memory(tmp_path, name, name, mode="upsert")
    plan = run(tmp_path, penstock_spark, sources=sources, transforms=transforms, sinks=sinks)
    for name in sinks:
        found = table(tmp_path, name.removeprefix("out_"))
        assert [*found[0]] == ["id", "name"]
        assert {row["id"]: row["name"] for row in found} == KEPT, name
    assert sorted((letter["node"], letter["code"]) for letter in dead_letters(plan)) == [
        ("rows1", "unknown-operation"), ("rows3", "unknown-operation"),
    ]  # fmt: skip


def test_changes_in_a_script(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Writes a keyed table by position, and a file of change events."""
    (tmp_path / "events.jsonl").write_text("\n".join(payloads()))
    script = tmp_path / "shop.sql"
    script.write_text(f"""
        CREATE TABLE events (
            id INT PRIMARY KEY, name STRING, name2 STRING GENERATED ALWAYS AS (name || '!')
        )
        WITH (connector = 'files', path = 'events.jsonl', format = 'debezium_json');
        CREATE VIEW visible AS
        SELECT id, upper(name) AS name, name2 FROM events WHERE name <> 'hidden';
        CREATE TABLE kept (key INT PRIMARY KEY, title STRING)
        WITH (connector = 'memory', name = '{tmp_path.name}');
        CREATE TABLE log (key INT PRIMARY KEY, title STRING)
        WITH (connector = 'files', path = 'log', format = 'debezium_json');
        INSERT INTO kept SELECT id, name FROM visible;
        INSERT INTO log (title, key) SELECT name2, id FROM visible;
    """)
    outcome = app.run(app.plan(script), spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    table = memory.tables[tmp_path.name]
    assert table.column_names == ["key", "title"]
    assert {row["key"]: row["title"] for row in table.to_pylist()} == KEPT
    (file,) = (tmp_path / "log").glob("*.jsonl")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(e["op"], (e["before"] or {}).get("key"), (e["after"] or {}).get("key"))
            for e in events] == [
        ("c", None, 1), ("c", None, 2), ("c", None, 3), ("d", 1, None), ("d", 3, None),
        ("d", 2, None), ("d", 9, None), ("c", None, 4), ("d", 4, None), ("c", None, 5),
        ("u", None, 6),
    ]  # fmt: skip


def test_conditions_on_complete_changes(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """A script of Arroyo, whose events have complete rows before, deletes no unknown rows."""
    ann, bob = {"id": 1, "name": "ann", "x": 5}, {"id": 2, "name": "bob", "x": 1}
    events = [
        {"op": "c", "before": None, "after": ann}, {"op": "c", "before": None, "after": bob},
        {"op": "u", "before": bob, "after": {**bob, "x": 2}},
        {"op": "u", "before": {**bob, "x": 2}, "after": {**bob, "x": 7}},
        {"op": "u", "before": ann, "after": {**ann, "x": 6}},
        {"op": "u", "before": {**ann, "x": 6}, "after": {**ann, "x": 3}},
        {"op": "d", "before": {**ann, "x": 3}, "after": None},
        {"op": "d", "before": {**bob, "x": 7}, "after": None},
    ]  # fmt: skip
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    script = tmp_path / "users.sql"
    script.write_text("""
        CREATE TABLE users (id BIGINT PRIMARY KEY, name TEXT, x INT) WITH (
            connector = 'single_file', path = 'events.jsonl', format = 'debezium_json',
            type = 'source');
        CREATE TABLE log (name TEXT, x INT) WITH (
            connector = 'single_file', path = 'log', format = 'debezium_json', type = 'sink');
        INSERT INTO log SELECT name, x FROM users WHERE x > 4;
    """)
    outcome = app.run(app.plan(script), spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    file = tmp_path / "log"
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["op"], each["before"], each["after"]) for each in written] == [
        ("c", None, {"name": "ann", "x": 5}), ("c", None, {"name": "bob", "x": 7}),
        ("u", {"name": "ann", "x": 5}, {"name": "ann", "x": 6}),
        ("d", {"name": "ann", "x": 6}, None), ("d", {"name": "bob", "x": 7}, None),
    ]  # fmt: skip


def moves(chance: random.Random) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Returns events of passengers who swap seats, and the passenger of each seat at the end.

    Of several passengers with one seat it is the last one to sit down.
    """
    seats = {f"p{number}": f"{number}A" for number in range(12)}
    events: list[dict[str, Any]] = [
        {"op": "c", "after": {"passenger": name, "seat": seat}} for name, seat in seats.items()
    ]
    for _ in range(30):
        one, other = chance.sample(sorted(seats), 2)
        before = {name: {"passenger": name, "seat": seats[name]} for name in (one, other)}
        seats[one], seats[other] = seats[other], seats[one]
        for name in chance.sample((one, other), 2):
            event = {"op": "u", "after": {"passenger": name, "seat": seats[name]}}
            if chance.random() < 0.7:
                event["before"] = before[name]
            events.append(event)
    for name in chance.sample(sorted(seats), 4):
        events.append({"op": "d", "before": {"passenger": name}})
        del seats[name]
    for name, seat in (("z", "98A"), ("y", "98A"), ("a", "99A"), ("b", "99A")):
        events.append({"op": "c", "after": {"passenger": name, "seat": seat}})
        seats[name] = seat
    events.append({"op": "d", "before": {"passenger": "b"}})
    del seats["b"]
    return events, {seat: name for name, seat in seats.items()}


def test_a_changed_key_deletes_no_row_of_another_key(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    divisions = [(1, 1), (1, 4), (2, 1), (4, 3)]
    moved = {
        f"rows{batches}_{parts}": moves(random.Random(batches)) for batches, parts in divisions
    }
    run(
        tmp_path, penstock_spark,
        sources={name: seats(events, batches, parts)
                 for (name, (events, _)), (batches, parts) in zip(
                     moved.items(), divisions, strict=True)},
        sinks={f"{name}_out": in_memory(tmp_path, name, name, primary_key="seat")
               for name in moved},
    )  # fmt: skip
    assert {name: seated(tmp_path, name) for name in moved} == {
        name: at_the_end for name, (_, at_the_end) in moved.items()
    }


def swap(group: str, reversed_: bool = False) -> list[dict[str, Any]]:
    """Returns events of two passengers who sit down in row 12 of a group, and swap seats."""
    rows = [(f"{name}{group}", f"12{seat}{group}") for name, seat in (("Ida", "A"), ("Tom", "B"))]
    ida, tom = ({"passenger": passenger, "seat": seat} for passenger, seat in rows)
    moved = [
        {"op": "u", "before": ida, "after": ida | {"seat": tom["seat"]}},
        {"op": "u", "before": tom, "after": tom | {"seat": ida["seat"]}},
    ]
    return [{"op": "c", "after": ida}, {"op": "c", "after": tom}, *moved[:: -1 if reversed_ else 1]]


def test_two_rows_swap_the_key_of_a_sink(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Each batch has a swap, half of a swap of two batches, and a quarter of one of four.

    Its partitions divide the halves.
    """
    two, each, late = swap("two"), swap("each"), swap("reversed", reversed_=True)
    parts = [two[:2], two[2:], late[:2], late[2:]]
    events = []
    for number, part in enumerate(parts):
        events += [part[0], *swap(f"one{number}"), part[1], each[number]]
    groups = ["one0", "one1", "one2", "one3", "two", "each", "reversed"]
    run(
        tmp_path, penstock_spark,
        sources={"moves": seats(events, len(parts), 2)},
        sinks={
            "table": in_memory(tmp_path, "table", "moves", primary_key="seat"),
            "log": {"type": "files", "from": "moves", "primary_key": "seat",
                    "path": str(tmp_path / "log"), "format": "debezium_json"},
        },
    )  # fmt: skip
    swapped = {f"12A{group}": f"Tom{group}" for group in groups}
    swapped |= {f"12B{group}": f"Ida{group}" for group in groups}
    assert seated(tmp_path, "table") == swapped
    assert logged(tmp_path / "log") == swapped


def seats(events: list[dict[str, Any]], batches: int, partitions: int) -> dict[str, Any]:
    """Returns the options of a source of events, whose primary key is the passenger."""
    return {"type": "memory", "payloads": [json.dumps(event) for event in events],
            "batches": batches, "partitions": partitions,
            "schema": "passenger STRING, seat STRING", "primary_key": "passenger",
            "format": "debezium_json"}  # fmt: skip


def seated(directory: Path, name: str) -> dict[str, str]:
    """Returns the passengers by seat of a sink whose primary key is the seat."""
    rows = table(directory, name)
    assert len({row["seat"] for row in rows}) == len(rows)
    return {row["seat"]: row["passenger"] for row in rows}


def logged(directory: Path) -> dict[str, str]:
    """Returns the passengers by seat after all events of a log."""
    passengers: dict[str, str] = {}
    for file in sorted(directory.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            row = event["after"] or event["before"]
            passengers.pop(row["seat"], None)
            if event["after"]:
                passengers[row["seat"]] = row["passenger"]
    return passengers


FIRST = [(1, 1, 5, "i"), (2, 1, 6, "i"), (3, 2, 7, "i"), (4, 2, 3, "i"), (5, 1, 9, "i")]
SECOND = [(1, 1, 1, "u"), (2, None, None, "d"), (3, 3, 8, "u"), (5, None, 2, "u"), (6, 2, 4, "i")]
LEFT_OVER = {1: (1, 1), 3: (3, 8), 4: (2, 3), 5: (None, 2), 6: (2, 4)}
"""The values `k` and `x` of each key after both batches."""
CONDITIONS = {
    "where": "SELECT k, count(*) AS n FROM a WHERE x > 2 GROUP BY k",
    "not_null": "SELECT k, sum(x) AS n FROM a WHERE k IS NOT NULL GROUP BY k",
    "exploded": "SELECT k, count(e) AS n FROM (SELECT k, explode(array(x, 1)) AS e FROM a "
                "WHERE x > 2) q GROUP BY k",
    "of_constants": "SELECT a.id AS k, v.n FROM a JOIN (VALUES (1, 10), (2, 20)) v(k, n) "
                    "ON a.k = v.k WHERE x > 2",
    "of_a_table": "SELECT a.id AS k, t.n FROM a JOIN t ON a.k = t.k",
    "semi_join": "SELECT id AS k, x AS n FROM a LEFT SEMI JOIN t ON a.k = t.k",
    "anti_join": "SELECT id AS k, x AS n FROM a LEFT ANTI JOIN t ON a.k = t.k",
    "several": "SELECT id AS k, explode(slice(array(x, 8), 1, x % 3)) AS n FROM a",
}  # fmt: skip
STATELESS = {
    "clock": "SELECT id AS k, x AS n FROM a WHERE x > 2 AND now() > TIMESTAMP '2024-01-01'",
    "subquery": "SELECT id AS k, x AS n FROM a WHERE k IN (SELECT k FROM t)",
    "unnamed": "SELECT id AS k, n FROM (SELECT id, x AS n FROM a) WHERE n > 2",
    "batch": "SELECT id AS k, x AS n FROM a WHERE x > 2",
}


def test_conditions_discard_no_changes(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """An update without the row before may leave a condition, and a delete has only the key."""
    for number, rows in enumerate((FIRST, SECOND)):
        put_changes(tmp_path, number, rows)
    where = CONDITIONS["where"]
    queries = {**CONDITIONS, **{f"where_{format_}": where.replace("FROM a", f"FROM {format_}")
                                for format_ in ("json", "csv")}}  # fmt: skip
    run(
        tmp_path, penstock_spark,
        sources={
            **{name: {"type": "files", "path": format_, "format": format_, "max_files": 1,
                      "order": "name", "schema": "id INT, k INT, x INT, op STRING",
                      "primary_key": "id", "operation_column": "op"}
               for name, format_ in {"a": "parquet", "json": "json", "csv": "csv"}.items()},
            "t": {"type": "memory", "rows": [{"k": 1, "n": 10}, {"k": 2, "n": 20}], "static": True,
                  "schema": "k INT, n INT"},
        },
        transforms={
            name: {"type": "sql", "sql": sql, **({"scope": "batch"} if name == "batch" else {})}
            for name, sql in (queries | STATELESS).items()
        },
        sinks={
            **{f"{name}_log": {"type": "files", "from": name, "path": f"log/{name}",
                               "format": "debezium_json"} for name in queries},
            **{f"{name}_table": in_memory(tmp_path, name, name, mode="upsert")
               for name in STATELESS},
        },
    )  # fmt: skip
    found = {name: folded(tmp_path / "log" / name) for name in queries}
    found |= {name: Counter(map(_values, table(tmp_path, name))) for name in STATELESS}
    expected = {name: answer(sql) for name, sql in (CONDITIONS | STATELESS).items()}
    assert found == expected | dict.fromkeys(("where_json", "where_csv"), expected["where"])


def put_changes(directory: Path, number: int, rows: list[tuple[Any, ...]]) -> None:
    """Writes the changes of a batch in three formats."""
    columns = {"id": pa.int32(), "k": pa.int32(), "x": pa.int32(), "op": pa.string()}
    changes = pa.Table.from_pylist(
        [dict(zip(columns, row, strict=True)) for row in rows],
        schema=pa.schema(list(columns.items())),
    )
    for format_ in ("parquet", "csv", "json"):
        (directory / format_).mkdir(exist_ok=True)
    pq.write_table(changes, directory / f"parquet/{number}.parquet")
    pa.csv.write_csv(changes, directory / f"csv/{number}.csv")
    lines = "".join(json.dumps(row) + "\n" for row in changes.to_pylist())
    (directory / f"json/{number}.json").write_text(lines)


def answer(sql: str) -> Counter[tuple[Any, ...]]:
    """Returns the answer of DuckDB over the rows that are left."""
    rows = ", ".join(f"({id_}, {k or 'NULL'}, {x})" for id_, (k, x) in LEFT_OVER.items())
    sql = sql.replace("explode(", "unnest(").replace("LEFT SEMI", "SEMI")
    sql = sql.replace("slice(array(x, 8)", "list_slice([x, 8]")
    sql = sql.replace("array(x, 1)", "[x, 1]").replace("LEFT ANTI", "ANTI")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE a AS SELECT * FROM (VALUES {rows}) v(id, k, x)")
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(k, n)")
        return Counter(connection.execute(sql).fetchall())


def folded(log: Path) -> Counter[tuple[Any, ...]]:
    """Returns the rows that the events of a log leave. Each row that is removed is there."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for file in sorted(log.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["before"] is not None:
                assert rows[_values(event["before"])] > 0
                rows[_values(event["before"])] -= 1
            if event["after"] is not None:
                rows[_values(event["after"])] += 1
    return +rows


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


UNKNOWN = [None, "", "INSERT", "U"]


def test_an_unknown_operation_is_a_dead_letter(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    """It deletes no row, also if the row does not meet a condition."""
    rows: list[dict[str, Any]] = [{"id": number, "op": "i"} for number in range(4)]
    rows += [{"id": number, "op": op} for number, op in enumerate(UNKNOWN)]
    rows += [{"id": 9, "op": "INSERT"}]
    sources, transforms, sinks = {}, {}, {}
    expected: dict[str, list[int]] = {}
    expected_rows = []
    for declared, updating in itertools.product(("source", "transform"), (True, False)):
        of_source, number = declared == "source", len(sources)
        kept = "op" if of_source else "CASE WHEN op = 'i' THEN 'i' END AS kind"
        sources[f"rows{number}"] = {
            "type": "memory", "rows": rows, "primary_key": "id", "schema": "id BIGINT, op STRING",
            **({"operation_column": "op"} if of_source else {}),
        }  # fmt: skip
        columns = "count(*) AS id" if updating else "id"
        transforms |= {
            f"read{number}": {"type": "sql", "sql": f"SELECT id, {kept} FROM rows{number}",
                              **({} if of_source else {"operation_column": "kind"})},
            f"kept{number}": {"type": "filter", "from": f"read{number}", "where": "id < 5"},
            f"result{number}": {"type": "sql", "sql": f"SELECT {columns} FROM kept{number}"},
        }  # fmt: skip
        sinks[f"out{number}"] = in_memory(
            tmp_path, str(number), f"result{number}", primary_key="id"
        )
        node = ("rows" if of_source else "read") if updating else "out"
        expected[f"{node}{number}"] = [0, 1, 2, 3, 9]
        expected_rows.append([4] if updating else [0, 1, 2, 3])
    plan = run(tmp_path, penstock_spark, sources=sources, transforms=transforms, sinks=sinks)
    found = [[row["id"] for row in table(tmp_path, str(number))] for number in range(len(sinks))]
    assert found == expected_rows
    letters: dict[str, list[int]] = {}
    for letter in dead_letters(plan):
        assert letter["code"] == "unknown-operation"
        letters.setdefault(letter["node"], []).append(json.loads(letter["payload"])["id"])
    assert {node: sorted(ids) for node, ids in letters.items()} == expected


def test_a_column_of_chance_is_computed_once(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Both sides of a join have the same values."""
    spec = {
        "runtime": {"state": str(tmp_path / "state")},
        "sources": {"rows": {"type": "memory", "rows": [{"id": n} for n in range(50)],
                             "batches": 2, "schema": "id INT, op STRING"},
                    "none": {"type": "memory", "rows": [], "schema": "id INT, op STRING",
                             "operation_column": "op", "primary_key": "id"}},
        "transforms": {
            "marked": {"type": "sql", "sql": "SELECT id, rand() AS r FROM rows"},
            "joined": {"type": "sql", "sql": "SELECT count(*) AS n FROM marked p JOIN marked q "
                       "ON p.id = q.id AND p.r = q.r LEFT ANTI JOIN none ON none.id = p.id"},
        },
        "sinks": {"out": {"type": "files", "from": "joined", "path": str(tmp_path / "log"),
                          "format": "debezium_json"}},
    }  # fmt: skip
    path = tmp_path / "changes.json"
    path.write_text(json.dumps(spec))
    outcome = app.run(app.plan(path), spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    assert folded(tmp_path / "log") == {(50,): 1}


DAY = "2024-01-01"
TIMED = [
    *({"op": "i", "id": id_, "at": f"{DAY}T00:00:0{id_}Z", "tags": ["a"]} for id_ in range(1, 5)),
    {"op": "i", "id": 5, "at": None},
    {"op": "i", "id": 6, "at": f"{DAY}T00:00:06Z"}, {"op": "u", "id": 6, "at": None},
    {"op": "i", "id": 7, "at": f"{DAY}T00:00:07Z"}, {"op": "d", "id": 7, "at": None},

    {"op": "u", "id": 1, "at": None, "tags": ["a", "b"]}, {"op": "d", "id": 2, "at": None},
    {"op": "u", "id": 3, "at": f"{DAY}T00:00:13Z", "tags": []},
    {"op": "x", "id": 4, "at": f"{DAY}T00:00:04Z", "tags": ["c"]},
    {"op": "i", "id": 8, "at": f"{DAY}T00:00:08Z", "tags": ["a"]},
    {"op": "u", "id": 8, "at": f"{DAY}T00:00:18Z", "tags": []},
    {"op": "i", "id": 9, "at": None}, {"op": "u", "id": 9, "at": f"{DAY}T00:00:09Z", "tags": ["b"]},
    {"op": "x", "id": 9, "at": None},
]  # fmt: skip
"""Changes of rows of the batch before (1 to 5) and of the same one (6 to 9), in two batches."""


def test_windows_of_changes(tmp_path: Path, penstock_spark: SparkSession) -> None:
    queries = {
        "starts": "SELECT id, window(at, '10 seconds').start AS value FROM a",
        "texts": "SELECT id, date_format(window(at, '10 seconds').end, 'ss') AS value FROM a",
        "ends": "SELECT id, window_time(w) AS value "
        "FROM (SELECT *, window(at, '10 seconds') AS w FROM a)",
        "days": "SELECT id, calendar_window(at, 'day', 'Asia/Tokyo').start AS value FROM a",
        "sessions": "SELECT *, session_window(at, '10 seconds') FROM a",
        "later": f"SELECT id, at AS value FROM a WHERE window(at, '10 seconds').start > '{DAY}'",
        "tagged": "SELECT id, explode(tags) AS value FROM a",
    }
    plan = run(
        tmp_path, penstock_spark,
        sources={"a": {"type": "memory", "batches": 2, "primary_key": "id", "rows": TIMED,
                       "operation_column": "op",
                       "schema": "op STRING, id INT, at TIMESTAMP, tags ARRAY<STRING>"}},
        transforms={name: {"type": "sql", "sql": sql} for name, sql in queries.items()},
        sinks={f"{name}_out": in_memory(
                   tmp_path, name, name, mode="upsert",
                   primary_key=["id", "value"] if name == "tagged" else ["id"])
               for name in queries},
    )  # fmt: skip
    found = {
        name: {(row["id"], str(row.get("value"))) for row in table(tmp_path, name)}
        for name in queries
    }
    assert found == {
        "starts": {
            (3, f"{DAY} 00:00:10+00:00"), (4, f"{DAY} 00:00:00+00:00"),
            (8, f"{DAY} 00:00:10+00:00"), (9, f"{DAY} 00:00:00+00:00"),
        },
        "texts": {(3, "20"), (4, "10"), (8, "20"), (9, "10")},
        "ends": {
            (3, f"{DAY} 00:00:19.999999+00:00"), (4, f"{DAY} 00:00:09.999999+00:00"),
            (8, f"{DAY} 00:00:19.999999+00:00"), (9, f"{DAY} 00:00:09.999999+00:00"),
        },
        "days": {(id_, "2023-12-31 15:00:00+00:00") for id_ in (3, 4, 8, 9)},
        "sessions": {(id_, "None") for id_ in (3, 4, 8, 9)},
        "later": {(3, f"{DAY} 00:00:13+00:00"), (8, f"{DAY} 00:00:18+00:00")},
        "tagged": {(1, "a"), (1, "b"), (4, "a"), (9, "b")},
    }  # fmt: skip
    # The state of the updating query does not take the row of id 4, and the source reports it.
    assert {(each["node"], each["code"]) for each in dead_letters(plan)} == {
        (node, "unknown-operation") for node in ("a", *(f"{name}_out" for name in queries))
        if node != "tagged_out"
    }  # fmt: skip
