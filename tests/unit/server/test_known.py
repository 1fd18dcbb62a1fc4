"""Rows that the server knows without a query, and answers without a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from penstock.server.api import context
from penstock.server.store.audit import Audit
from penstock.server.store.database import Database
from penstock.server.store.known import Known
from penstock.server.store.pipelines import Pipelines
from penstock.server.store.tables import PIPELINES

if TYPE_CHECKING:
    from server_console import Console


def test_a_value_is_known_until_its_table_changes(tmp_path: Path) -> None:
    database = Database.open(tmp_path)
    known, queries = Known[str](database, PIPELINES), iter("abcd")

    def read() -> str | None:
        return known.read("key", lambda: next(queries))

    assert (read(), read()) == ("a", "a")
    Audit(database).record("ann", "start", "1")
    assert read() == "a"
    database.execute(insert(PIPELINES).values(id="1", file="/orders.yaml"))
    assert known.get("key") is None
    assert read() == "b"
    with database.transaction():
        pass
    assert read() == "c"
    database.lease.times_taken += 1
    assert read() == "d"
    database.close()


def test_threads_share_one_query(tmp_path: Path) -> None:
    database = Database.open(tmp_path)
    known, queries, began = Known[str](database, PIPELINES), [], threading.Barrier(8)

    def query() -> str:
        queries.append(1)
        return "value"

    def read() -> None:
        began.wait()
        assert known.read("key", query) == "value"

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(queries) == 1
    database.close()


@pytest.mark.slow
def test_known_rows_are_answered_without_a_thread(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = console.id()
    expected = [console.get(f"pipelines/{id}/runs"), console.get(f"pipelines/{id}")["text"]]

    async def reject(*_: object) -> None:
        raise AssertionError("a known row has a thread")

    monkeypatch.setattr(context, "run_in_threadpool", reject)
    assert expected == [console.get(f"pipelines/{id}/runs"), console.get(f"pipelines/{id}")["text"]]


def test_pipelines_change_at_once(tmp_path: Path) -> None:
    database = Database.open(tmp_path)
    pipelines = Pipelines(database)
    assert (pipelines.is_known, pipelines.all()) == (False, [])
    id = pipelines.add("/orders.yaml")
    assert pipelines.get(id).wish == "stopped"
    assert pipelines.is_known
    pipelines.set_wish(id, "running", "ann")
    assert pipelines.get(id).wish == "running"
    assert pipelines.starts(id) == [] and pipelines.knows_starts(id)
    assert pipelines.begin_start(id, "run", None, "ann")
    assert [start.run for start in pipelines.starts(id)] == ["run"]
    pipelines.end_start("run")
    assert pipelines.starts(id)[0].ended
    pipelines.remove(id)
    assert pipelines.all() == []
    database.close()
