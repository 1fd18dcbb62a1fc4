"""The sink of DuckDB."""

from __future__ import annotations

from contextlib import closing

from penstock.connectors.duckdb.config import DuckdbSinkConfig
from penstock.connectors.duckdb.types import DIALECT
from penstock.connectors.duckdb.writing import WritingConnection
from penstock.sdk.database.conflicts import ConflictSink


class DuckdbSink(ConflictSink[DuckdbSinkConfig]):
    """Writes rows to a table of a DuckDB database, as Arrow batches.

    A batch is one transaction, which also records the batch in the table `penstock_batches` in the
    schema of the table. With `mode: upsert` rows replace the rows with their primary key, and
    deletes remove rows; with `mode: replace` the table has the rows of the last batch. A row that a
    type or a constraint rejects becomes a dead letter. Arrays, maps and structs are native; a
    struct is also written to a UNION, of whose members one has a value.

    One process at a time can use a file that is written to. The sink opens the file for each
    batch, and waits for other processes up to `timeout`.

    ```yaml
    type: duckdb
    from: hourly
    path: report.duckdb
    table: late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "duckdb"
    client_modules = ("duckdb",)
    dialect = DIALECT

    def connect(self) -> WritingConnection:
        return WritingConnection(self.config)

    def check(self) -> None:
        with closing(self.connect()) as connection:
            connection.query("SELECT 1")
        super().check()
