"""Pipelines from the changes of MariaDB to tables of databases."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from pipelines import Workspace

from penstock.runtime.receiving.receivers import Receiver
from servers.mariadb import PASSWORD, USER, MariaDb

PIPELINE = """\
name: shop
sources:
  orders:
    type: mysql
    url: {url}
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
    table: {database}.orders
    changes: true
sinks:
  copy: {{type: sqlite, from: orders, path: shop.db, table: orders, mode: upsert}}
"""
ROWS = "SELECT id, customer, CAST(amount AS CHAR) FROM orders ORDER BY id"


def test_changes_become_a_copy(mariadb: MariaDb, workspace: Workspace, monkeypatch: Any) -> None:
    """Changes during runs and between them reach the copy, also if the receiver is killed."""
    database = mariadb.new_database()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    text = PIPELINE.format(url=mariadb.login["url"], user=USER, database=database)
    receivers: list[Receiver] = []
    start = Receiver._start
    monkeypatch.setattr(Receiver, "_start", lambda self: (receivers.append(self), start(self))[1])
    with mariadb.client(database=database) as client, client.cursor() as cursor:

        def db(statement: str) -> list[Any]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        db("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount decimal(10, 2))")
        db("INSERT INTO orders SELECT seq, concat('c', seq % 5), seq FROM seq_1_to_12000")
        for part in range(2):
            handle = workspace.start(text)
            count = 2 * part
            _until(lambda n=count: len(_copied(workspace)) > 1000 and len(receivers) > n, handle)
            db("UPDATE orders SET amount = amount + 0.5 WHERE id % 3 = 0")
            receivers[-1].kill()
            db("UPDATE orders SET customer = 'c9', id = -id WHERE id > 0 AND id % 50 = 0")
            db(f"DELETE FROM orders WHERE id % 7 = {part}")
            _until(lambda: _copied(workspace) == db(ROWS), handle)
            handle.stop()
            outcome = handle.wait(60)
            assert outcome is not None and outcome.errors == {}
            db(f"INSERT INTO orders VALUES (100000 + {part}, 'between', 7)")
        assert len(receivers) == 4
        workspace.run(text, until="caught_up")
        assert _copied(workspace) == db(ROWS)


def _copied(workspace: Workspace) -> list[Any]:
    with suppress(sqlite3.Error), closing(sqlite3.connect(workspace.root / "shop.db")) as db:
        return db.execute("SELECT id, customer, amount FROM orders ORDER BY id").fetchall()
    return []


def _until(condition: Callable[[], bool], handle: Any, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        ended = handle.wait(0.1)
        assert ended is None and time.monotonic() < deadline, ended
