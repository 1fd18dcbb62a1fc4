"""Tables of lakes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from iceberg_tables import TABLE, catalog_options, client
from stores.system import COLUMNS, System


class Delta(System):
    name = "delta"

    def __init__(self, directory: Path) -> None:
        self.path = directory / "delta"

    def options(self) -> dict[str, Any]:
        return {"path": str(self.path)}

    of_sink = of_source = options

    def create(self) -> None:
        from deltalake import DeltaTable

        shutil.rmtree(self.path, ignore_errors=True)
        DeltaTable.create(str(self.path), COLUMNS)

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        from deltalake import write_deltalake

        write_deltalake(str(self.path), pa.Table.from_batches(batches), mode="append")

    def read(self) -> int:
        from deltalake import DeltaTable

        return int(DeltaTable(str(self.path)).to_pyarrow_table().num_rows)


class Iceberg(System):
    name = "iceberg"

    def __init__(self, directory: Path) -> None:
        self._options = catalog_options(directory)

    def options(self) -> dict[str, Any]:
        return self._options

    of_sink = of_source = options

    def create(self) -> None:
        catalog = client(self._options)
        catalog.create_namespace_if_not_exists("shop")
        if catalog.table_exists(TABLE):
            catalog.drop_table(TABLE)
        catalog.create_table(TABLE, COLUMNS)

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        client(self._options).load_table(TABLE).append(pa.Table.from_batches(batches))

    def read(self) -> int:
        return int(client(self._options).load_table(TABLE).scan().to_arrow().num_rows)
