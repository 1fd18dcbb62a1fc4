"""Connections that write rows to a table of MySQL."""

from __future__ import annotations

import pyarrow as pa

from penstock.connectors.mysql import loading
from penstock.connectors.mysql.config import MysqlSinkConfig
from penstock.connectors.mysql.connection import MysqlConnection, error_number
from penstock.connectors.mysql.literals import blocks, check_stored
from penstock.core.errors import PenstockError
from penstock.sdk.database import TableName
from penstock.sdk.database.conflicts import ConflictConnection

_SAVEPOINT = "penstock_load"


class WritingConnection(ConflictConnection, MysqlConnection):
    """A connection that treats rows with an existing key as the options of a sink say.

    Many rows without a key are loaded by LOAD DATA LOCAL, where the server allows it.
    """

    def __init__(self, config: MysqlSinkConfig) -> None:
        super().__init__(config)
        self.conflicts = config
        ((self._loads,),) = self.query("SELECT @@local_infile")

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        for block in blocks(rows):
            if not self._load(table, block):
                super().insert(table, block)

    def _load(self, table: TableName, rows: pa.RecordBatch) -> bool:
        """Loads rows. Returns False, without an effect, if an INSERT must write them.

        LOAD DATA LOCAL changes values and leaves out rows, both with a warning, where an INSERT is
        rejected. After a warning the INSERT finds the rows.
        """
        target = self._target(table)
        if not self._loads or not loading.is_loadable(rows, target):
            return False
        check_stored(rows, target)
        names = self.dialect.quote_all(rows.schema.names)
        statement = loading.statement(self.dialect.table(table), names)
        self.execute(f"SAVEPOINT {_SAVEPOINT}")
        try:
            result = self._call(loading.load, self.client, statement, loading.lines(rows))
        except PenstockError as error:
            if error_number(error) not in loading.NOT_ALLOWED:
                raise
            self._loads = False
            return False
        if result == (rows.num_rows, 0):
            self.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
            return True
        self.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        return False
