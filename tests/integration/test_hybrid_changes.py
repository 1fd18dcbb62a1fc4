"""Rows that end, and then the changes or the messages that follow: none is missing between them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from socket import socket
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from pipelines import Workspace

from penstock.runtime.handle import RunHandle
from penstock.runtime.receiving.receivers import Receivers
from servers.postgres import PASSWORD, USER, Postgres
from servers.server import free_port

pytestmark = pytest.mark.spark

CONNECTION = """\
name: shop
connections:
  db:
    url: {url}
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
"""
LAKE = f"""\
{CONNECTION}
sources:
  orders:
    type: hybrid
    columns_of: last
    metadata: [transaction, snapshot, received]
    phases:
      - {{{{type: files, path: lake/*.jsonl, order: name, max_files: 1}}}}
      - {{{{type: postgres, connection: db, table: {{schema}}.orders, changes: true,
          slot: {{schema}}, snapshot: false, on_truncate: apply}}}}
transforms:
  plain: {{{{type: drop, from: orders, columns: [transaction, snapshot, received]}}}}
sinks:
  copy: {{{{type: sqlite, from: plain, path: shop.db, table: orders, mode: upsert,
    schema_changes: apply}}}}
"""
EVENTS = """\
  log: {{type: files, from: orders, path: log, format: debezium_json}}
"""
TABLE = f"""\
{CONNECTION}
sources:
  orders:
    type: hybrid
    columns_of: last
    phases:
      - {{{{type: postgres, connection: db, table: {{schema}}.orders}}}}
      - {{{{type: postgres, connection: db, table: {{schema}}.orders, changes: true,
          slot: {{schema}}, snapshot: false}}}}
sinks:
  copy: {{{{type: sqlite, from: orders, path: shop.db, table: orders, mode: upsert}}}}
"""
MESSAGES = """\
name: shop
sources:
  orders:
    type: hybrid
    schema: id INT, city STRING
    phases:
      - {{type: files, path: lake/*.jsonl, order: name}}
      - {{type: http, listen: "127.0.0.1:{port}"}}
sinks:
  out: {{type: memory, from: orders}}
"""


@pytest.fixture
def schema(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A schema whose replication slot, of the same name, is removed."""
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    name = postgres.new_schema()
    yield name
    with postgres.client() as db:
        query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        db.execute(f"{query} WHERE slot_name = %s AND NOT active", (name,))


@pytest.fixture
def db(postgres: Postgres, schema: str) -> Iterator[Any]:
    with postgres.client(options=f"-c search_path={schema}") as client:
        client.execute("CREATE TABLE orders (id int PRIMARY KEY, city text)")
        yield client


def test_a_lake_and_then_the_changes(
    workspace: Workspace, postgres: Postgres, schema: str, db: Any
) -> None:
    """With changes between runs, and a column that the table gains."""
    text = LAKE.format(url=postgres.login["url"], user=USER, schema=schema)
    text += EVENTS.format()
    text = text.replace("on_truncate: apply", "on_truncate: fail")
    put_lake(workspace, db)
    handle = workspace.start(text)
    until(handle, lambda: len(copied(workspace)) == 9)
    db.execute("UPDATE orders SET city = 'Rome' WHERE id < 2")
    db.execute("DELETE FROM orders WHERE id = 8")
    until(handle, lambda: copied(workspace) == orders(db))
    stop(handle)
    db.execute("INSERT INTO orders VALUES (9, 'Kyiv')")
    db.execute("ALTER TABLE orders ADD COLUMN note text")
    db.execute("UPDATE orders SET note = 'last' WHERE id = 0")
    workspace.run(text, until="caught_up")
    assert copied(workspace) == orders(db)
    assert read(workspace, "SELECT id FROM orders WHERE note = 'last'") == [(0,)]
    found = events(workspace)
    assert [(row["op"], row["after"]["id"]) for row in found[:9]] == [
        ("c", id_) for id_ in range(9)
    ]
    names = ("transaction", "snapshot", "received")
    assert all(row["after"][name] is None for row in found[:9] for name in names)
    assert [row["op"] for row in found[9:]] == ["u", "u", "d", "c", "u"]
    assert all((row["after"] or row["before"])["snapshot"] is False for row in found[9:])


def test_a_truncation_after_the_lake(
    workspace: Workspace, postgres: Postgres, schema: str, db: Any
) -> None:
    """Empties the target, also by a batch that is repeated as after a kill."""
    text = LAKE.format(url=postgres.login["url"], user=USER, schema=schema)
    put_lake(workspace, db)
    workspace.run(text, until="caught_up")
    assert copied(workspace) == orders(db)
    shutil.copy(workspace.root / "shop.db", workspace.root / "before.db")
    db.execute("TRUNCATE orders; INSERT INTO orders VALUES (5, 'Bonn')")
    workspace.run(text, until="caught_up")
    assert copied(workspace) == [(5, "Bonn")]
    commits = workspace.root / ".penstock/shop/checkpoints/orders/commits"
    max(commits.glob("[0-9]*"), key=lambda path: int(path.name)).unlink()
    shutil.copy(workspace.root / "before.db", workspace.root / "shop.db")
    workspace.run(text, until="caught_up")
    assert copied(workspace) == [(5, "Bonn")]


def test_rows_before_the_slot_exists(
    workspace: Workspace, postgres: Postgres, schema: str, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot waits for a transaction. Rows that are committed meanwhile are not in its log.

    The run looks for the beginning of the receiver meanwhile, and reads no rows.
    """
    looks: list[bool] = []

    def phases_have_begun(receivers: Receivers) -> bool:
        looks.append(all(phase.has_begun() for phase in receivers._phases))
        return looks[-1]

    monkeypatch.setattr(Receivers, "phases_have_begun", property(phases_have_begun))
    text = TABLE.format(url=postgres.login["url"], user=USER, schema=schema)
    db.execute("INSERT INTO orders SELECT n, 'Oslo' FROM generate_series(1, 5) AS n")
    slot = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
    options = f"-c search_path={schema}"
    with postgres.client(options=options) as other, other.transaction():
        other.execute("INSERT INTO orders VALUES (100, 'open')")
        handle = workspace.start(text)
        until(handle, lambda: db.execute(slot, (schema,)).fetchall() != [])
        seen = len(looks)
        until(handle, lambda: len(looks) > seen + 1 or copied(workspace) != [])
        db.execute("INSERT INTO orders VALUES (6, 'Rome')")
        db.execute("UPDATE orders SET city = 'Rome' WHERE id = 1")
    until(handle, lambda: copied(workspace) == orders(db))
    db.execute("UPDATE orders SET city = 'Kyiv' WHERE id IN (2, 100)")
    until(handle, lambda: copied(workspace) == orders(db))
    stop(handle)


def test_a_lake_and_then_messages(workspace: Workspace) -> None:
    port = free_port()
    text = MESSAGES.format(port=port)
    workspace.put("lake/0.jsonl", ['{"id": 1, "city": "Oslo"}', '{"id": 2, "city": "Oslo"}'])
    handle = workspace.start(text)
    send(port, b'{"id": 3, "city": "Rome"}', handle)
    send(port, b"bad", handle)
    workspace.await_rows(handle, "out", 3)
    send(port, b'{"id": 4, "city": "Rome"}', handle)
    stop(handle)
    workspace.put("lake/1.jsonl", ['{"id": 9, "city": "late"}'])
    workspace.run(text, until="caught_up")
    ids = workspace.result()["id"].to_list()
    assert sorted(ids[:2]) == [1, 2] and ids[2:] == [3, 4]
    (letter,) = workspace.dead_letters("shop")
    assert (letter["payload"], letter["origin"], letter["position"]) == (b"bad", "2:journal", 1)


def test_a_run_after_a_failed_one_awaits_its_receiver(workspace: Workspace) -> None:
    """The first run has received, and has failed before the bounded phase had an end."""
    with closing(socket()) as used:
        used.bind(("127.0.0.1", 0))
        text = MESSAGES.format(port=used.getsockname()[1])
        text += "runtime: {restart: {attempts: 2, backoff: 100 ms}}\n"
        broken = text.replace("lake/*.jsonl", "lake/0.jsonl")
        first = workspace.start(broken.replace(f":{used.getsockname()[1]}", f":{free_port()}"))
        outcome = first.wait(60)
        assert outcome is not None and "cannot find files" in str(outcome.errors["orders"])
        workspace.put("lake/0.jsonl", ['{"id": 1, "city": "Oslo"}'])
        outcome = workspace.start(text, until="caught_up").wait(60)
    assert outcome is not None and outcome.errors["orders"].code == "listen"
    assert not (workspace.root / ".penstock/shop/nodes/orders/bounds.json").exists()


def put_lake(workspace: Workspace, db: Any) -> None:
    """Writes three files with the rows of the table."""
    for number in range(3):
        rows = [{"id": 3 * number + each, "city": "Oslo"} for each in range(3)]
        workspace.put(f"lake/{number}.jsonl", map(json.dumps, rows))
        db.cursor().executemany("INSERT INTO orders VALUES (%(id)s, %(city)s)", rows)


def send(port: int, payload: bytes, handle: RunHandle) -> None:
    """Sends a message once the receiver listens."""

    def is_sent() -> bool:
        try:
            with urlopen(Request(f"http://127.0.0.1:{port}/", payload), timeout=10) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

    until(handle, is_sent)


def until(handle: RunHandle, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert handle.wait(0.05) is None and time.monotonic() < deadline


def stop(handle: RunHandle) -> None:
    handle.stop()
    outcome = handle.wait(60)
    assert outcome is not None and outcome.errors == {}


def read(workspace: Workspace, query: str) -> list[Any]:
    with closing(sqlite3.connect(workspace.root / "shop.db")) as file:
        known = file.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchall()
        return file.execute(query).fetchall() if known else []


def copied(workspace: Workspace) -> list[Any]:
    return read(workspace, "SELECT id, city FROM orders ORDER BY id")


def orders(db: Any) -> list[Any]:
    return list(db.execute("SELECT id, city FROM orders ORDER BY id").fetchall())


def events(workspace: Workspace) -> list[Any]:
    files = sorted((workspace.root / "log").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
