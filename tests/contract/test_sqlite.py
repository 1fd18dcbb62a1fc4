from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table
from penstock.connectors.sqlite import SqliteSink, SqliteSource
from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.sdk.database import TableName
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample

TABLE = TableName(("t",))


class OneTable:
    format = None

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        sqlite3.connect(tmp_path / "db").close()
        return {"path": str(tmp_path / "db"), "table": "t"}


class TestSqliteSource(OneTable, SourceContract):
    component = SqliteSource
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        self._create(options, sample.SIMPLE)

        def put(rows: Any, schema: pa.Schema) -> None:
            with closing(SqliteConnection(options["path"], "rwc")) as connection:
                known = connection.columns(TABLE)
                if known is None or known.names != schema.names:
                    self._create(options, schema)
                connection.insert(TABLE, pa.RecordBatch.from_pylist(rows, schema=schema))
                connection.commit()

        return put

    @staticmethod
    def _create(options: dict[str, Any], schema: pa.Schema) -> None:
        with closing(SqliteConnection(options["path"], "rwc")) as connection:
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(connection.dialect.create_table(TABLE, schema))


class TestSqliteSink(OneTable, SinkContract):
    component = SqliteSink

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(rows_of_table, SqliteSource, options)
