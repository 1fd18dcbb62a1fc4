"""Changes of tables of MySQL: snapshot and binary log, without Spark.

The tests of MariaDB have all else that both servers have in common.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.mysql import MysqlSource
from penstock.core.errors import Permanent
from penstock.sdk.database.changes import receiver
from penstock.sdk.database.changes.progress import DONE, Progress
from servers.mariadb import PASSWORD, USER
from servers.mysql import MySql
from table_changes import Changes, changes_of, fails

_TYPES = """
CREATE TABLE t (
    id bigint unsigned PRIMARY KEY, j json, n decimal(30, 10), at datetime(6),
    stamp timestamp(3) NULL, e enum('a', 'ß'), s set('x', 'y'),
    b bit(9), y year, txt text, bin varbinary(9), f double
)
"""
_ROWS = """
INSERT INTO t VALUES
    (18446744073709551615, '{"a": [1, 2.5, "ß", null, true], "b": {"c": -1}}', -1.5,
     '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59.123', 'ß', 'x,y', b'100000001', 2024,
     '😀''"', x'00ff', 0.1),
    (1, '"text"', 0, '1000-01-01', NULL, 'a', '', b'0', 1901, '', '', -1e300),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@pytest.fixture(scope="module")
def mysql() -> Iterator[MySql]:
    with MySql() as server:
        yield server


@pytest.fixture
def changes(mysql: MySql, tmp_path: Path) -> Iterator[Callable[..., Changes]]:
    started: list[Changes] = []

    def create(table: str, state: str = "state", server: MySql = mysql, **options: Any) -> Changes:
        config = MysqlSource.config_type.model_validate(
            {**server.login, "table": table, "changes": True, **options}
        )
        started.append(changes_of(MysqlSource, config, tmp_path / state, in_thread=True))
        return started[-1]

    yield create
    for each in started:
        with suppress(AttributeError, AssertionError):
            each.stop()


def execute(server: MySql, *statements: str) -> Any:
    """Executes statements. Returns the rows of the last one."""
    with server.client() as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall()


def test_values_of_changes_are_those_of_the_snapshot(
    mysql: MySql, changes: Callable[..., Changes]
) -> None:
    execute(mysql, _TYPES, _ROWS)
    read = changes("t")
    read.start()
    read.until(lambda: len(read.read_again()[0]) == 3)

    def is_in_stream() -> bool:
        execute(mysql, "UPDATE t SET f = coalesce(f, 0) + 1 WHERE id = 2")
        progress = Progress.read(read.source._reader)
        return progress is not None and progress.chunk == DONE and progress.commit > 0

    read.until(is_in_stream)
    execute(mysql, "UPDATE t SET f = NULL WHERE id = 2")
    read.until(lambda: read.table()[2,]["f"] is None)
    expected = read.table().copy()
    execute(mysql, "DELETE FROM t")
    read.until(lambda: read.table() == {})
    execute(mysql, _ROWS)
    read.until(lambda: len(read.table()) == 3)
    assert read.table() == expected
    assert expected[1,]["j"] is not None and expected[2**64 - 1,]["b"] is not None


class Replica(MySql):
    """A replica that commits in another order. Its log has other names of files."""

    settings = {
        "server-id": "2",
        "log-bin": "other",
        "replica-parallel-workers": "4",
        "replica-preserve-commit-order": "OFF",
    }

    def follow(self, primary: MySql) -> None:
        """Replicates all that the primary has in its log, and has no other transactions."""
        execute(
            self,
            "RESET BINARY LOGS AND GTIDS",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={primary.port}, "
            f"SOURCE_USER='{USER}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, "
            "GET_SOURCE_PUBLIC_KEY=1",
            "START REPLICA",
        )

    def promote(self, primary: MySql) -> None:
        """Ends the replication once it has all transactions of the primary."""
        ((executed,),) = execute(primary, "SELECT @@global.gtid_executed")
        ((is_late,),) = execute(self, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 120)")
        assert not is_late
        execute(self, "STOP REPLICA", "RESET REPLICA ALL")


@pytest.fixture(scope="module")
def replica(mysql: MySql) -> Iterator[Replica]:
    """A replica of the server. The last test promotes it."""
    with Replica() as server:
        server.follow(mysql)
        yield server


def test_failover_from_a_replica_that_commits_in_another_order(
    mysql: MySql, replica: Replica, changes: Callable[..., Changes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that the replica had not committed is read, also if later ones were processed."""
    execute(
        mysql, "CREATE TABLE v (id int PRIMARY KEY, n int, s longtext)",
        "INSERT INTO v VALUES (1, 0, '')",
    )  # fmt: skip
    ((executed,),) = execute(mysql, "SELECT @@global.gtid_executed")
    execute(replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 120)")

    def rows(read: Changes) -> list[tuple[str, int, int]]:
        return [(row["_op"], row["id"], row["n"]) for row in read.read_again()[0]]

    # The receiver ends before it stores another place, as in a crash.
    monkeypatch.setattr(receiver, "_CONFIRM_SECONDS", 1e9)
    expected = [("i", 1, 0)]
    # Each row fills a segment of the journal, which is removed once the row is processed.
    read = changes("v", "gap", replica, journal={"max_size": "1MiB"})
    read.start()
    read.until(lambda: rows(read) == expected)
    with replica.client(autocommit=False) as blocking, blocking.cursor() as cursor:
        cursor.execute("SELECT * FROM v WHERE id = 1 FOR UPDATE")
        execute(mysql, "UPDATE v SET n = 1 WHERE id = 1")
        for id_ in (2, 3):
            execute(mysql, f"INSERT INTO v VALUES ({id_}, 0, repeat('x', 140000))")
            expected.append(("i", id_, 0))
            read.until(lambda: rows(read) == expected)
        source = read.source
        source.commit(source.latest_offset(source.initial_offset()))
        read.stop()
        blocking.rollback()
    execute(mysql, "INSERT INTO v VALUES (4, 0, '')")
    expected += [("u", 1, 1), ("i", 4, 0)]
    last = changes("v", "gap", mysql)
    last.start()
    last.until(lambda: rows(last)[-1:] == [("i", 4, 0)])
    assert rows(last) == expected


def test_another_server_by_gtids(
    mysql: MySql, replica: Replica, changes: Callable[..., Changes]
) -> None:
    """A failover neither loses nor repeats a change, also of those after the stored place.

    Changes that only the journal has are an error.
    """
    execute(mysql, "CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u VALUES (1)")
    known = [1]

    def add(server: MySql, id_: int) -> None:
        execute(server, f"INSERT INTO u VALUES ({id_})")
        known.append(id_)

    def read(state: str, server: MySql) -> Changes:
        reader = changes("u", state, server)
        reader.start()
        reader.until(lambda: [row["id"] for row in reader.read_again()[0]] == known)
        return reader

    def read_without_confirming(state: str, id_: int) -> None:
        """Reads a change that is in the journal after the stored place, as after a crash."""
        reader = read(state, mysql)
        file = reader.source.directory / "confirmed"
        number = len(known)
        add(mysql, id_)
        reader.until(lambda: len(reader.read_again()[0]) == number + 1)
        time.sleep(2)
        reader.stop()
        confirmed = file.read_text()
        assert "gtids" in confirmed
        add(mysql, id_ + 1)
        read(state, mysql).stop()
        file.write_text(confirmed)

    execute(replica, "SET GLOBAL read_only = ON")
    options = {**replica.login, "query": "SELECT 1 AS id", "cursor_columns": ["id"]}
    with pytest.raises(Permanent, match="is a replica, which does not have"):
        config = MysqlSource.config_type.model_validate({**options, "watch": True})
        MysqlSource.create(config).check()
    execute(replica, "SET GLOBAL read_only = OFF")
    read_without_confirming("order", 2)
    replica.promote(mysql)
    read_without_confirming("diverged", 4)
    del known[-2:]
    for id_ in (6, 7):
        add(replica, id_)
    last = read("order", replica)
    file = last.source.directory / "confirmed"
    last.until(lambda: "other.0" in file.read_text())
    last.stop()
    add(replica, 8)
    read("order", replica).stop()
    error = fails(changes("u", "diverged", replica), "does not have all transactions")
    assert error.code == "data-gone"
