from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table
from penstock.connectors.clickhouse import ClickhouseSink, ClickhouseSource
from penstock.connectors.clickhouse.types import DIALECT
from penstock.connectors.clickhouse.writing import WritingConnection
from penstock.sdk.database import TableName
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.clickhouse import ClickHouse


class OneTable:
    component: type[ClickhouseSource | ClickhouseSink]
    format = None
    wrong_credentials = {"auth": {"username": "made-up-user", "password": "wrong"}}

    @pytest.fixture
    def server(self, clickhouse: ClickHouse) -> ClickHouse:
        return clickhouse

    @pytest.fixture
    def options(self, clickhouse: ClickHouse) -> dict[str, Any]:
        options = {**clickhouse.login, "table": clickhouse.new_table(), "timeout": "5s"}
        if self.component is ClickhouseSource:
            create(options, sample.SIMPLE)
        return options

    @pytest.fixture(autouse=True)
    def _no_nested_nulls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Leaves out the nulls of lists and structs, which ClickHouse does not have."""
        rows = sample.make_typed_rows()
        rows[-1] |= {"tags": [], "where": {"city": None, "floor": None}}
        monkeypatch.setattr(sample, "make_typed_rows", lambda: rows)


def connect(options: dict[str, Any]) -> Any:
    config = ClickhouseSink.config_type.model_validate(options)
    return closing(WritingConnection(config, DIALECT))


def create(options: dict[str, Any], schema: pa.Schema) -> None:
    """Creates a table with a key that grows."""
    table = TableName.parse(options["table"])
    with connect(options) as connection:
        name = connection.dialect.table(table)
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        columns = ", ".join(map(connection.dialect.column, schema))
        number = (
            '"serial number" UInt64 '
            "DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))) + rowNumberInAllBlocks()"
        )
        connection.execute(
            f'CREATE TABLE {name} ({columns}, {number}) ENGINE = MergeTree ORDER BY "serial number"'
        )


class TestClickhouseSource(OneTable, SourceContract):
    component = ClickhouseSource
    batch_limit = {"max_records": 1}
    rejects_bad_records = True

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        table = TableName.parse(options["table"])

        def put(rows: Any, schema: pa.Schema) -> None:
            with connect(options) as connection:
                known = connection.columns(table)
                if known is None or known.names != [*schema.names, "serial number"]:
                    create(options, schema)
                connection.insert(table, pa.RecordBatch.from_pylist(rows, schema=schema))

        return put


class TestClickhouseSink(OneTable, SinkContract):
    component = ClickhouseSink

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(rows_of_table, ClickhouseSource, options)
