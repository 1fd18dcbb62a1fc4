from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table
from penstock.connectors.duckdb import DuckdbSink, DuckdbSource
from penstock.connectors.duckdb.writing import WritingConnection
from penstock.sdk.database import TableName
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample

TABLE = TableName(("t",))
NUMBER = "BIGINT DEFAULT nextval('numbers') PRIMARY KEY"


def connect(options: dict[str, Any]) -> Any:
    return closing(WritingConnection(DuckdbSink.config_type.model_validate(options)))


class TestDuckdbSource(SourceContract):
    format = None
    component = DuckdbSource
    batch_limit = {"max_records": 1}
    rejects_bad_records = True

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        options = {"path": str(tmp_path / "db"), "table": "t"}
        self._create(options, sample.SIMPLE)
        return options

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        def put(rows: Any, schema: pa.Schema) -> None:
            with connect(options) as connection:
                known = connection.columns(TABLE)
                connection.rollback()
                if known.names != [*schema.names, "serial number"]:
                    self._create(options, schema)
                connection.insert(TABLE, pa.RecordBatch.from_pylist(rows, schema=schema))
                connection.commit()

        return put

    @staticmethod
    def _create(options: dict[str, Any], schema: pa.Schema) -> None:
        with connect(options) as connection:
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute("CREATE SEQUENCE IF NOT EXISTS numbers")
            statement = connection.dialect.create_table(TABLE, schema).removesuffix(")")
            connection.execute(f'{statement}, "serial number" {NUMBER})')
            connection.commit()


class TestDuckdbSink(SinkContract):
    format = None
    component = DuckdbSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "db"), "table": "t"}

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(rows_of_table, DuckdbSource, options)
