from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table
from penstock.connectors.jdbc import JdbcSink, JdbcSource
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.sdk.database import TableName
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.drivers import POSTGRES, driver
from servers.postgres import Postgres


def connect(options: dict[str, Any]) -> Any:
    return closing(JdbcConnection(JdbcSink.config_type.model_validate(options)))


def create(options: dict[str, Any], schema: pa.Schema, number: str) -> None:
    table = TableName.parse(options["table"])
    with connect(options) as connection:
        name = connection.dialect.table(table)
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        statement = connection.dialect.create_table(table, schema).removesuffix(")")
        connection.execute(f'{statement}, "serial number" {number} PRIMARY KEY)')
        connection.commit()


def put_rows(options: dict[str, Any], number: str, rows: Any, schema: pa.Schema) -> None:
    table = TableName.parse(options["table"])
    with connect(options) as connection:
        known = connection.columns(table)
        connection.rollback()
        if known is None or known.names != [*schema.names, "serial number"]:
            create(options, schema, number)
        connection.insert(table, pa.RecordBatch.from_pylist(rows, schema=schema))
        connection.commit()


class InPostgres:
    format = None
    number = "BIGSERIAL"

    @pytest.fixture
    def options(self, postgres: Postgres) -> dict[str, Any]:
        return {
            "url": f"jdbc:postgresql://127.0.0.1:{postgres.port}/made-up%20shop",
            "jars": [driver(POSTGRES)], "auth": postgres.login["auth"],
            "table": f"{postgres.new_schema()}.t",
        }  # fmt: skip


class TestJdbcSource(InPostgres, SourceContract):
    component = JdbcSource
    batch_limit = {"max_records": 1}
    rejects_bad_records = True

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        create(options, sample.SIMPLE, self.number)
        return partial(put_rows, options, self.number)


class TestJdbcSink(InPostgres, SinkContract):
    component = JdbcSink

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(rows_of_table, JdbcSource, options)
