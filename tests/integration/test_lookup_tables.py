"""Lookup tables over files: read again when they change, with one content for each batch."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from integration.pipelines import Workspace
from penstock.connectors import memory
from penstock.runtime.handle import RunHandle

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.spark

SOURCES = """\
sources:
  orders:
    {{type: files, path: in/*.jsonl, watch: {watch}, format: json, max_files: 1, order: name,
      schema: "id INT, user STRING, at TIMESTAMP", watermark: {{column: at}}}}
  users: {{type: files, path: users.csv, schema: "user STRING, city STRING", lookup: {lookup}}}
"""
JOINED = """\
transforms:
  joined: {type: sql, sql: "SELECT id, at, city FROM orders LEFT JOIN users USING (user)"}
"""
ROWS = """\
sinks:
  out: {type: memory, from: joined, name: out}
"""
UPDATES = """\
  counted: {type: sql, sql: "SELECT city, count(*) AS n FROM joined GROUP BY city"}
sinks:
  out: {type: memory, from: counted, name: out, primary_key: [city]}
"""
WINDOWS = """\
  counted:
    type: sql
    sql: SELECT city, count(*) AS n FROM joined GROUP BY window(at, '1 hour'), city
sinks:
  out: {type: memory, from: counted, name: out}
"""


def pipeline(rest: str, *, watch: str = "true", lookup: str = "true") -> str:
    return SOURCES.format(watch=watch, lookup=lookup) + JOINED + rest


def put_users(workspace: Workspace, *lines: str) -> None:
    workspace.put("users.csv", ["user,city", *lines])


def put_order(workspace: Workspace, number: int, user: str = "ann", hour: int = 10) -> None:
    row = f'{{"id": {number}, "user": "{user}", "at": "2026-01-01T{hour}:00:00Z"}}'
    workspace.put(f"in/{number}.jsonl", [row])


def cities(workspace: Workspace) -> list[tuple[Any, ...]]:
    return sorted(workspace.result().select("id", "city").rows())


def test_a_batch_is_joined_with_the_rows_at_its_start(
    workspace: Workspace, handles: list[RunHandle]
) -> None:
    """Bad lines of each content are dead letters."""
    put_users(workspace, "ann,1", "cy,Rome")
    put_order(workspace, 1)
    text = pipeline(ROWS).replace('"user STRING, city STRING"', '"user STRING, city INT"')
    handles.append(workspace.start(text))
    workspace.await_rows(handles[0], "out", 1)
    put_users(workspace, "ann,2", "bob,3", "eve,Oslo", "cy,Rome")
    put_order(workspace, 2)
    put_order(workspace, 3, "bob")
    workspace.await_rows(handles[0], "out", 3)
    put_users(workspace, "bob,3")
    put_order(workspace, 4)
    workspace.await_rows(handles[0], "out", 4)
    handles[0].stop()
    outcome = handles[0].wait(60)
    assert outcome is not None and outcome.errors == {}
    assert cities(workspace) == [(1, 1), (2, 2), (3, 3), (4, None)]
    payloads = {letter["payload"] for letter in workspace.dead_letters()}
    assert payloads == {b"cy,Rome", b"eve,Oslo"}


def test_rows_are_joined_before_windows_and_updates(
    workspace: Workspace, handles: list[RunHandle]
) -> None:
    """The join is then part of the stream's plan, which Spark makes once."""
    put_users(workspace, "ann,Rome")
    put_order(workspace, 1)
    handles.append(workspace.start(pipeline(WINDOWS)))
    put_order(workspace, 2, hour=12)
    workspace.await_rows(handles[0], "out", 1)
    put_users(workspace, "ann,Oslo")
    put_order(workspace, 3, hour=13)
    put_order(workspace, 4, hour=13)
    put_order(workspace, 5, hour=15)
    workspace.await_rows(handles[0], "out", 3)
    assert workspace.result().rows() == [("Rome", 1), ("Rome", 1), ("Oslo", 2)]


def test_updating_queries_count_by_the_rows_of_their_batches(
    workspace: Workspace, handles: list[RunHandle]
) -> None:
    put_users(workspace, "ann,Rome")
    put_order(workspace, 1)
    endless = pipeline(UPDATES).replace(", watermark: {column: at}", "")
    handles.append(workspace.start(endless))
    workspace.await_rows(handles[0], "out", 1)
    put_users(workspace, "ann,Oslo")
    put_order(workspace, 2)
    workspace.await_rows(handles[0], "out", 2)
    assert sorted(workspace.result().rows()) == [("Oslo", 1), ("Rome", 1)]


def test_rows_are_used_for_their_ttl_and_by_a_repeated_batch(
    workspace: Workspace, handles: list[RunHandle]
) -> None:
    """The next run reads them again, but not for a batch that it writes again."""
    put_users(workspace, "ann,Rome")
    put_order(workspace, 1)
    text = pipeline(ROWS, lookup="{cache: {ttl: 1 hour}}")
    handles.append(workspace.start(text))
    workspace.await_rows(handles[0], "out", 1)
    put_users(workspace, "ann,Oslo")
    put_order(workspace, 2)
    workspace.await_rows(handles[0], "out", 2)
    handles[0].stop()
    assert handles[0].wait(60) is not None
    put_order(workspace, 3)
    workspace.run(text.replace("watch: true", "watch: false"))
    assert cities(workspace) == [(1, "Rome"), (2, "Rome"), (3, "Oslo")]
    commits = workspace.root / ".penstock/pipeline/checkpoints/orders/commits"
    (commits / "2").unlink()
    (commits / ".2.crc").unlink(missing_ok=True)
    memory.clear()
    put_users(workspace, "ann,Bern")
    put_order(workspace, 4)
    workspace.run(pipeline(ROWS, watch="false"))
    assert cities(workspace) == [(3, "Oslo"), (4, "Bern")]


def test_cases_give_the_rows_of_lookup_tables(cli: Any, tmp_path: Path) -> None:
    """Also for a topic, whose records are changes."""
    (tmp_path / "shop.yaml").write_text("""
sources:
  orders: {type: files, path: in/*.jsonl, schema: "id INT, user INT"}
  users:
    {type: kafka, brokers: "localhost:1", topic: users, schema: "user INT, city STRING",
     primary_key: [user], lookup: true}
transforms:
  joined: {type: sql, sql: "SELECT id, city FROM orders LEFT JOIN users USING (user)"}
sinks:
  out: {type: print, from: joined}
tests:
  - name: cities
    given:
      orders: [{id: 1, user: 1}, {id: 2, user: 2}]
      users: [{user: 1, city: Rome}, {user: 2, city: Bern}, {user: 1, city: Oslo}]
    expect:
      joined: [{id: 1, city: Oslo}, {id: 2, city: Bern}]
""")
    tested = cli(tmp_path, "test", "shop.yaml")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    explained = cli(tmp_path, "explain", "shop.yaml", "--static")
    assert "lookup; user INT, city STRING\n" in explained.stdout


DATABASE = """\
sources:
  orders: {{type: memory, rows: {orders}, schema: "id INT, user STRING, shop INT"}}
  users: {{type: sqlite, path: users.db, table: users, lookup: {{cache: {{ttl: 1m}}}}}}
  shops:
    {{type: sqlite, path: users.db, lookup: true, primary_key: [no],
      query: "SELECT shop AS no, max(city) AS city FROM shops GROUP BY 1"}}
transforms:
  joined:
    type: sql
    sql: |
      SELECT id, age, city
      FROM orders LEFT JOIN users u ON u.name = user LEFT JOIN shops s ON s.no = shop
sinks:
  out: {{type: memory, from: joined, name: out}}
"""


def test_rows_of_a_database(workspace: Workspace) -> None:
    """The key of the table is that of the database. A value of another type is a dead letter."""
    with sqlite3.connect(workspace.root / "users.db") as db:
        db.execute("CREATE TABLE users (name TEXT PRIMARY KEY, age INT)")
        db.executemany("INSERT INTO users VALUES (?, ?)", [("ann", 31), ("bob", "old")])
        db.execute("CREATE TABLE shops (shop INT, city TEXT)")
        db.executemany("INSERT INTO shops VALUES (?, ?)", [(1, "Oslo"), (1, "Bonn"), (2, "Bern")])
    orders = [
        {"id": number, "user": user, "shop": shop}
        for number, (user, shop) in enumerate(
            [("ann", 1), ("bob", 2), ("cy", 3), (None, None), ("ann", 2)]
        )
    ]
    workspace.run(DATABASE.format(orders=json.dumps(orders)))
    rows = {row["id"]: (row["age"], row["city"]) for row in workspace.result().to_dicts()}
    assert rows == {
        0: (31, "Oslo"), 1: (None, "Bern"), 2: (None, None), 3: (None, None), 4: (31, "Bern")
    }  # fmt: skip
    (dead,) = workspace.dead_letters()
    assert dead["node"] == "users" and "bob" in str(dead["payload"])


TRANSFORMS = """\
sources:
  orders:
    type: memory
    rows: [{id: 0, user: ann}, {id: 1, user: bob}, {id: 2, user: null}, {id: 3, user: CY}]
  users: {type: sqlite, path: users.db, table: users, lookup: true}
  cities: {type: memory, static: true, rows: [{User: ann, City: Oslo}, {User: CY, City: Bern}]}
transforms:
"""
MISSING = """\
  aged_NAME:
    {type: lookup, from: orders, table: users, on: {user: name}, columns: {years: age},
      missing: 'NAME'}
  placed_NAME: {type: lookup, from: aged_NAME, table: cities, on: [user], columns: [City]}
"""
SINK = "  to_NAME: {type: memory, from: placed_NAME, name: 'NAME'}\n"
POLICIES = ("null", "drop", "dead_letter")


def test_lookup_transforms(workspace: Workspace) -> None:
    with sqlite3.connect(workspace.root / "users.db") as db:
        db.execute("CREATE TABLE users (name TEXT PRIMARY KEY, age INT)")
        db.executemany("INSERT INTO users VALUES (?, ?)", [("ann", None), ("bob", 40)])
    transforms, sinks = (
        "".join(part.replace("NAME", name) for name in POLICIES) for part in (MISSING, SINK)
    )
    workspace.run(f"{TRANSFORMS}{transforms}sinks:\n{sinks}")
    found = {0: (None, "Oslo"), 1: (40, None)}
    for name in POLICIES:
        rows = {row["id"]: (row["years"], row["City"]) for row in workspace.result(name).to_dicts()}
        assert rows == found | ({2: (None, None), 3: (None, "Bern")} if name == "null" else {})
    dead = workspace.dead_letters()
    assert {letter["node"] for letter in dead} == {"aged_dead_letter"}
    assert sorted(json.loads(letter["payload"])["id"] for letter in dead) == [2, 3]
    assert sorted((letter["code"], letter["message"]) for letter in dead) == [
        ("no-row", 'the key user = CY has no row in "users"'),
        ("no-row", 'the key user = null has no row in "users"'),
    ]
