from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table
from penstock.connectors.postgres import PostgresSink, PostgresSource
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.sdk.database import TableName
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.postgres import Postgres


class OneTable:
    format = None

    @pytest.fixture
    def options(self, postgres: Postgres) -> dict[str, Any]:
        return {**postgres.login, "table": f"{postgres.new_schema()}.t"}


def connect(options: dict[str, Any]) -> Any:
    return closing(PostgresConnection(PostgresSink.config_type.model_validate(options)))


class TestPostgresSource(OneTable, SourceContract):
    component = PostgresSource
    batch_limit = {"max_records": 1}
    rejects_bad_records = True
    unsupported = {"test_message_above_max_message_size": "an option of changes"}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        table = TableName.parse(options["table"])
        name = PostgresConnection.dialect.table(table)

        def create(schema: pa.Schema) -> None:
            with connect(options) as connection:
                connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute(connection.dialect.create_table(table, schema))
                number = 'ADD COLUMN "serial number" BIGSERIAL PRIMARY KEY'
                connection.execute(f"ALTER TABLE {name} {number}")
                connection.commit()

        def put(rows: Any, schema: pa.Schema) -> None:
            with connect(options) as connection:
                known = connection.columns(table)
                connection.rollback()
                if known is None or known.names != [*schema.names, "serial number"]:
                    create(schema)
                connection.insert(table, pa.RecordBatch.from_pylist(rows, schema=schema))
                connection.commit()

        create(sample.SIMPLE)
        return put


class TestPostgresSink(OneTable, SinkContract):
    component = PostgresSink

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(rows_of_table, PostgresSource, options)
