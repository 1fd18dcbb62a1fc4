"""The sink of SQLite."""

from __future__ import annotations

from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.connectors.sqlite.types import DIALECT
from penstock.sdk import UserPath
from penstock.sdk.database.config import UpdateWhereConfig
from penstock.sdk.database.conflicts import ConflictConnection, ConflictSink


class SqliteSinkConfig(UpdateWhereConfig):
    path: UserPath
    """The file of the database, which is created if it is missing."""


class WritingConnection(ConflictConnection, SqliteConnection):
    """A connection that treats rows with an existing key as the options of a sink say."""

    def __init__(self, config: SqliteSinkConfig) -> None:
        super().__init__(config.path, "rwc")
        self.conflicts = config


class SqliteSink(ConflictSink[SqliteSinkConfig]):
    """Writes rows to a table of a SQLite database.

    A batch is one transaction, which also records the batch in the table `penstock_batches` of the
    database. With `mode: upsert` rows replace the rows with their primary key, and deletes remove
    rows; with `mode: replace` the table has the rows of the last batch. Lists, maps and structs are
    JSON text. `-0.0` is stored as `0.0`, and NaN as text.

    ```yaml
    type: sqlite
    from: hourly
    path: report.db
    table: late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    dialect = DIALECT

    def connect(self) -> WritingConnection:
        return WritingConnection(self.config)
