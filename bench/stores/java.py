"""Databases by JDBC."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc import JdbcSink
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.connectors.jdbc.driver import Driver
from penstock.sdk.java import java_class
from servers.drivers import POSTGRES, driver
from servers.postgres import Postgres
from stores.servers import PostgresTable
from stores.system import QUERY, ROWS


class JdbcTable(PostgresTable):
    """A table of PostgreSQL by its driver of JDBC. The client calls the driver from Python, too."""

    name = "jdbc"

    def __init__(self, directory: Path, server: Postgres) -> None:
        super().__init__(directory, server)
        self._jar = driver(POSTGRES)

    def options(self) -> dict[str, Any]:
        database = self.server.login["url"].partition("//")[2]
        return {
            "url": f"jdbc:postgresql://{database}?reWriteBatchedInserts=true", "jars": [self._jar],
            "auth": self.server.login["auth"],
        }  # fmt: skip

    def _client(self) -> Any:
        """Returns a connection of the driver."""
        config = JdbcSink.config_type.model_validate({**self.options(), "table": "t"})
        return closing(Driver(config).connect(JdbcConnection(config).dialect))

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Writes by batches of a prepared statement."""
        time = java_class("java.time.OffsetDateTime")
        with self._client() as client:
            statement = client.prepareStatement("INSERT INTO t VALUES (?, ?, ?, ?, ?)")
            for rows in batches:
                times = [str(each).replace(" ", "T") for each in rows["changed"].to_pylist()]
                others = (column.to_pylist() for column in rows.columns[:-1])
                for id_, name, price, count, changed in zip(*others, times, strict=True):
                    statement.setLong(1, id_)
                    statement.setString(2, name)
                    statement.setDouble(3, price)
                    statement.setInt(4, count)
                    statement.setObject(5, time.parse(changed))
                    statement.addBatch()
                statement.executeBatch()
            client.commit()

    def read(self) -> int:
        """Reads rows as tuples."""
        count, time = 0, java_class("java.time.OffsetDateTime")
        with self._client() as client:
            statement = client.createStatement()
            statement.setFetchSize(ROWS)
            result = statement.executeQuery(QUERY)
            rows = []
            while result.next():
                rows.append(
                    (
                        result.getLong(1), str(result.getString(2)), result.getDouble(3),
                        result.getInt(4), str(result.getObject(5, time)),
                    )
                )  # fmt: skip
                if len(rows) == ROWS:
                    count, rows = count + len(rows), []
        return count + len(rows)
