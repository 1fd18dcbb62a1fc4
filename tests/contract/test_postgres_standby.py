"""Changes that are read from a standby of PostgreSQL, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.postgres import PostgresSource
from penstock.connectors.postgres.changes import snapshot
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import PenstockError
from penstock.sdk.database.changes.progress import DONE, Progress
from servers.postgres import ROOT
from servers.postgres18 import Postgres18, Standby
from table_changes import Changes, changes_of, fails


@pytest.fixture(scope="module")
def primary() -> Iterator[Postgres18]:
    with Postgres18() as server:
        yield server


@pytest.fixture(scope="module")
def standby(primary: Postgres18) -> Iterator[Standby]:
    with Standby(primary) as server:
        yield server


@pytest.fixture
def db(primary: Postgres18) -> Iterator[Any]:
    with primary.client() as client:
        yield client


@pytest.fixture
def changes(standby: Standby, db: Any, tmp_path: Path) -> Iterator[Callable[[], Changes]]:
    started: list[Changes] = []

    def create() -> Changes:
        config = PostgresSource.config_type.model_validate(
            {**standby.login, "table": "t", "changes": True, "slot": "copies"}
        )
        started.append(changes_of(PostgresSource, config, tmp_path, in_thread=True))
        return started[-1]

    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    await_replay(db, standby)
    yield create
    for each in started:
        with suppress(AttributeError, AssertionError):
            each.stop()


def await_replay(db: Any, standby: Standby) -> None:
    """Waits until a standby has replayed all that its primary has written."""
    (position,) = db.execute("SELECT pg_current_wal_lsn()").fetchone()
    deadline = time.monotonic() + 60
    with standby.client() as client:
        query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        while not client.execute(query, (position,)).fetchone()[0]:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def table_of(db: Any) -> dict[Any, dict[str, Any]]:
    return {(id_,): {"id": id_, "v": v} for id_, v in db.execute("SELECT * FROM t").fetchall()}


def test_new_rows_of_a_standby(standby: Standby) -> None:
    """A standby does not have the transactions that may commit rows of before."""
    options = {**standby.login, "query": "SELECT 1 AS id, now() AS at", "watch": True}
    by_id = PostgresSource.config_type.model_validate({**options, "cursor_columns": ["id"]})
    with pytest.raises(PenstockError, match="is a standby, which does not have") as found:
        PostgresSource.create(by_id).check()
    assert found.value.code == "standby" and "min_age" in str(found.value.hint)
    options |= {"cursor_columns": ["at"], "min_age": "1h"}
    PostgresSource.create(PostgresSource.config_type.model_validate(options)).check()


def test_changes_of_a_standby(
    db: Any, changes: Callable[[], Changes], primary: Postgres18, standby: Standby,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The end of a transaction that runs during the read of a chunk is newer than the chunk.

    A kill of the standby, and its promotion, neither lose nor repeat a change.
    """
    db.execute("INSERT INTO t SELECT n, 'old' FROM generate_series(1, 250) AS n")
    await_replay(db, standby)
    read = changes()
    error = fails(read, 'the publication "copies" does not have the table "t"')
    assert error.code == "standby" and "on the primary" in str(error.hint)
    db.execute(str(error.hint).removeprefix("Run ").removesuffix(" on the primary."))
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 100)
    begin, copy_rows = PostgresConnection.execute, PostgresConnection.copy_rows
    running, ids = primary.client(), count(1, 100)
    root = primary.client(ROOT, "postgres")
    running.autocommit = False

    def change_and_begin(self: PostgresConnection, statement: str, *parameters: Any) -> int:
        """Changes a row of the chunk, and ends a later one, before the snapshot of a chunk."""
        if statement.startswith("BEGIN"):
            id_ = next(ids)
            running.execute("UPDATE t SET v = 'new' WHERE id = %s", (id_,))
            db.execute("INSERT INTO t VALUES (%s, 'later')", (1000 + id_,))
            await_replay(db, standby)
        return begin(self, statement, *parameters)

    def commit_and_copy(self: PostgresConnection, *arguments: Any) -> Iterator[Any]:
        """Ends the transaction after the snapshot, before the rows are read."""
        running.commit()
        await_replay(db, standby)
        yield from copy_rows(self, *arguments)

    monkeypatch.setattr(PostgresConnection, "execute", change_and_begin)
    monkeypatch.setattr(PostgresConnection, "copy_rows", commit_and_copy)
    read.start()

    def is_read() -> bool:
        # A slot of a standby waits for this record of the primary.
        root.execute("SELECT pg_log_standby_snapshot()")
        progress = Progress.read(read.source._reader)
        return progress is not None and progress.chunk == DONE

    read.until(is_read)
    assert [read.table()[id_,]["v"] for id_ in (1, 101, 201)] == ["new"] * 3
    read.until(lambda: read.table() == table_of(db))
    running.close()
    root.close()
    known = len(read.rows)
    db.execute("UPDATE t SET v = 'again' WHERE id = 1")
    db.execute("UPDATE t SET id = -id WHERE id = 2")
    read.until(lambda: read.table() == table_of(db))
    standby.kill()
    db.execute("DELETE FROM t WHERE id = 3")
    standby.start()
    read.until(lambda: read.table() == table_of(db))
    (position,) = db.execute("SELECT pg_current_wal_lsn()").fetchone()
    with standby.client() as client:
        query = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots"
        read.until(lambda: client.execute(query, (position,)).fetchone()[0])
        standby.client(ROOT, "postgres").execute("SELECT pg_promote()")
        client.execute("INSERT INTO t VALUES (2000, 'after the promotion')")
        read.until(lambda: read.table() == table_of(client))
    assert [(row["_op"], row["id"]) for row in read.rows[known:]] == [
        ("u", 1), ("d", 2), ("i", -2), ("d", 3), ("i", 2000)
    ]  # fmt: skip
