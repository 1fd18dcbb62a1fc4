"""A random workload on a table of a database, whose changes a pipeline reads meanwhile."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any, ClassVar

from servers.mariadb import MariaDb
from servers.postgres import Postgres

Rows = dict[int, tuple[Any, ...]]
"""Rows by their key: n, name, price, at, extra."""
MOST = 400
"""The largest number of rows in one transaction, for each thousand operations."""


class Origin(ABC):
    """The table `items` of a database: its server, its statements and its rows."""

    name: ClassVar[str]
    columns: ClassVar[str]
    insert: ClassVar[str]
    """Adds a row, or changes the row with this key: key, n, name."""
    fill: ClassVar[str]
    """Adds rows with the odd keys below a number."""

    server: Any
    table: str

    @abstractmethod
    def client(self) -> Any:
        """A connection without automatic commits."""

    @abstractmethod
    def source(self) -> str:
        """The options of the source."""

    def create(self, rows: int) -> None:
        """Creates the table with so many rows."""
        self.execute(f"CREATE TABLE {self.table} ({self.columns})")
        self.execute(self.fill.format(table=self.table, limit=2 * rows))

    def execute(self, statement: str) -> None:
        """Executes a statement in a transaction of its own."""
        with closing(self.client()) as client, client.cursor() as cursor:
            cursor.execute(statement)
            client.commit()

    def rows(self) -> Rows:
        """The rows of the table."""
        with closing(self.client()) as client, client.cursor() as cursor:
            cursor.execute(f"SELECT id, n, name, price, at, extra FROM {self.table}")
            return {id_: tuple(values) for id_, *values in cursor.fetchall()}


class PostgresTable(Origin):
    name = "postgres"
    columns = "id int PRIMARY KEY, n int, name text, price numeric(20, 6), at timestamptz"
    insert = (
        "INSERT INTO {table} (id, n, name, price, at) "
        "VALUES (%s, %s, %s, 0.000001, '2026-03-01 10:00:00.000001+00') "
        "ON CONFLICT (id) DO UPDATE SET n = excluded.n, name = excluded.name"
    )
    fill = (
        "INSERT INTO {table} SELECT k, 0, 'first', k / 7.0, "
        "timestamptz '2026-01-01 00:00:00.123456+00' + k * interval '1 second' "
        "FROM generate_series(1, {limit}, 2) AS k"
    )

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.schema = server.new_schema()
        self.table = f"{self.schema}.items"

    def client(self) -> Any:
        client = self.server.client(options="-c timezone=UTC")
        client.autocommit = False
        return client

    def source(self) -> str:
        login = self.server.login
        return (
            f"type: postgres, url: '{login['url']}', auth: {{username: {login['auth']['username']},"
            f" password: '${{SHOP_PASSWORD}}'}}, table: {self.table}, changes: true,"
            f" slot: {self.schema}"
        )


class MariaDbTable(Origin):
    name = "mariadb"
    columns = "id int PRIMARY KEY, n int, name text, price decimal(20, 6), at timestamp(6) NULL"
    insert = (
        "INSERT INTO {table} (id, n, name, price, at) "
        "VALUES (%s, %s, %s, 0.000001, '2026-03-01 10:00:00.000001') "
        "ON DUPLICATE KEY UPDATE n = VALUES(n), name = VALUES(name)"
    )
    fill = (
        "INSERT INTO {table} SELECT seq, 0, 'first', seq / 7, "
        "timestamp '2026-01-01 00:00:00.123456' + interval seq second FROM seq_1_to_{limit}_step_2"
    )

    def __init__(self, server: MariaDb) -> None:
        self.server = server
        self.database = server.new_database()
        self.table = f"{self.database}.items"

    def client(self) -> Any:
        return self.server.client(autocommit=False)

    def source(self) -> str:
        login = self.server.login
        return (
            f"type: mysql, url: '{login['url']}', auth: {{username: {login['auth']['username']},"
            f" password: '${{SHOP_PASSWORD}}'}}, table: {self.table}, changes: true"
        )


class Workload(threading.Thread):
    """Random transactions on a table, until there were so many operations or it is ended.

    The workload waits after each part of the operations until `allow` begins the next one.

    A transaction inserts, updates, deletes or changes keys; one in seven is rolled back, and one in
    a hundred changes many rows. After half of the operations the table gets a further column. A
    lost connection is made again: the transaction may have been committed, so only the table knows
    its rows.
    """

    def __init__(
        self, origin: Origin, operations: int, *, parts: int, keys: int, seed: int
    ) -> None:
        super().__init__(name=f"workload of {origin.name}", daemon=True)
        self.origin, self.operations, self.keys = origin, operations, keys
        self.done = 0
        self._part = self._allowed = -(-operations // parts)
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self._has_extra = False
        self._dice = random.Random(seed)

    def allow(self) -> None:
        """Begins the next part of the operations."""
        self._allowed += self._part

    def run(self) -> None:
        try:
            while self.done < self.operations and not self.ended.is_set():
                with suppress(*_lost_connection()), closing(self.origin.client()) as client:
                    self._work(client)
                time.sleep(0.05)
        except BaseException as error:
            self.error = error

    def _work(self, client: Any) -> None:
        with client.cursor() as cursor:
            while self.done < self.operations and not self.ended.is_set():
                if not self._has_extra and self.done >= self.operations // 2:
                    table = self.origin.table
                    cursor.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS extra int")
                    client.commit()
                    self._has_extra = True
                if self.done >= self._allowed:
                    time.sleep(0.02)
                    continue
                for statement, values in self._transaction():
                    cursor.execute(statement, values)
                    self.done += max(cursor.rowcount, 1)
                client.rollback() if self._dice.random() < 1 / 7 else client.commit()

    def _transaction(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        dice, table = self._dice, self.origin.table
        if dice.random() < 0.01:
            most = max(MOST * self.operations // 1000, 10)
            first = dice.randrange(self.keys)
            yield f"UPDATE {table} SET n = n + 1 WHERE id BETWEEN %s AND %s", (first, first + most)
            return
        for _ in range(dice.choice((1, 1, 2, 5))):
            yield dice.choice(
                (self._insert, self._insert, self._update, self._delete, self._move)
            )()

    def _insert(self) -> tuple[str, tuple[Any, ...]]:
        statement = self.origin.insert.format(table=self.origin.table)
        return statement, (self._key(), self._dice.randrange(1000), f"n{self._dice.random()}'\"ü")

    def _update(self) -> tuple[str, tuple[Any, ...]]:
        key = self._key()
        extra = ", extra = n" if self._has_extra else ""
        changes = f"n = n + 1, price = price * -1, name = NULL{extra}"
        statement = f"UPDATE {self.origin.table} SET {changes}"
        return f"{statement} WHERE id BETWEEN %s AND %s", (key, key + 3)

    def _delete(self) -> tuple[str, tuple[Any, ...]]:
        return f"DELETE FROM {self.origin.table} WHERE id = %s", (self._key(),)

    def _move(self) -> tuple[str, tuple[Any, ...]]:
        """Gives a row another key, which no row has: the key of each row is moved once."""
        key = self._key()
        table = self.origin.table
        return (
            f"UPDATE {table} SET id = -id WHERE id = %s AND id > 0 AND NOT EXISTS "
            f"(SELECT 1 FROM (SELECT id FROM {table} WHERE id = %s) AS moved)",
            (key, -key),
        )

    def _key(self) -> int:
        return self._dice.randrange(1, self.keys)


def _lost_connection() -> tuple[type[Exception], ...]:
    import psycopg
    import pymysql

    return psycopg.OperationalError, pymysql.err.OperationalError, pymysql.err.InterfaceError


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Waits. Raises AssertionError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)
