from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_tables import catalog_options, client, rows_of
from penstock.connectors.iceberg import IcebergSink, IcebergSource
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample


class TestIcebergSource(SourceContract):
    format = None
    component = IcebergSource
    batch_limit = {"max_files": 1}
    rejects_bad_records = True

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        options = {**catalog_options(tmp_path), "watch": True, "interval": "1ms"}
        catalog = client(options)
        catalog.create_namespace("shop")
        catalog.create_table(options["table"], schema=sample.SIMPLE)
        return options

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        def put(rows: Any, schema: pa.Schema) -> None:
            table = client(options).load_table(options["table"])
            if not {*schema.names} <= {field.name for field in table.schema().fields}:
                with table.update_schema() as update:
                    update.union_by_name(schema)
            table.append(pa.Table.from_pylist(rows, schema=schema))

        return put


class TestIcebergSink(SinkContract):
    format = None
    component = IcebergSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return catalog_options(tmp_path)

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return lambda schema: rows_of(options, schema)
