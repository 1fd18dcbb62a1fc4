from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from database_tables import rows_of_table
from penstock.connectors.mysql import MysqlSink, MysqlSource
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.sdk.database import TableName
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.mariadb import MariaDb


class OneTable:
    component: type[MysqlSource | MysqlSink]
    format = None
    wrong_credentials = {"auth": {"username": "made-up-user", "password": "wrong"}}

    @pytest.fixture
    def server(self, mariadb: MariaDb) -> MariaDb:
        return mariadb

    @pytest.fixture
    def options(self, mariadb: MariaDb) -> dict[str, Any]:
        options = {**mariadb.login, "table": f"{mariadb.new_database()}.t", "timeout": "5s"}
        if self.component is MysqlSource:
            create(options, sample.SIMPLE)
        return options

    @pytest.fixture(autouse=True)
    def _names_of_mysql(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Leaves out the name with a character beyond U+FFFF, which MySQL does not allow."""
        names = [field for field in sample.SPECIAL_NAMES if max(field.name) <= "\uffff"]
        monkeypatch.setattr(sample, "SPECIAL_NAMES", pa.schema(names))


def connect(options: dict[str, Any]) -> Any:
    return closing(MysqlConnection(MysqlSink.config_type.model_validate(options)))


def create(options: dict[str, Any], schema: pa.Schema) -> None:
    """Creates a table with a key that grows."""
    table = TableName.parse(options["table"])
    with connect(options) as connection:
        name = connection.dialect.table(table)
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(connection.dialect.create_table(table, schema))
        number = "ADD COLUMN `serial number` BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY"
        connection.execute(f"ALTER TABLE {name} {number}")
        connection.commit()


class TestMysqlSource(OneTable, SourceContract):
    component = MysqlSource
    batch_limit = {"max_records": 1}
    rejects_bad_records = True
    unsupported = {"test_message_above_max_message_size": "an option of changes"}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        table = TableName.parse(options["table"])

        def put(rows: Any, schema: pa.Schema) -> None:
            with connect(options) as connection:
                known = connection.columns(table)
                connection.rollback()
                if known is None or known.names != [*schema.names, "serial number"]:
                    create(options, schema)
                connection.insert(table, pa.RecordBatch.from_pylist(rows, schema=schema))
                connection.commit()

        return put


class TestMysqlSink(OneTable, SinkContract):
    component = MysqlSink

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return partial(rows_of_table, MysqlSource, options)
