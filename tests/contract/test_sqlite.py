from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.sqlite import SqliteSink, SqliteSource
from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.sdk import Read
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
        def rows(schema: pa.Schema) -> Any:
            source = SqliteSource.create(SqliteSource.config_type(**options))
            assert isinstance(source, SqliteSource)
            source.columns = schema
            with closing(source):
                start = source.initial_offset()
                parts = source.partitions(start, source.latest_offset(start))
                read = Read()
                found = [r for p in parts for b in source.read(p, read) for r in b.to_pylist()]
            assert not read.bad
            return found

        return rows
