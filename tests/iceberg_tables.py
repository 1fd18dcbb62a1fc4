"""Catalogs and tables of Iceberg, used without the connector of Penstock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import URL

TABLE = "shop.orders"


def catalog_options(directory: Path) -> dict[str, Any]:
    """Returns the options of a table in a new catalog, whose paths have special characters."""
    home = directory / "a 'b?#%20ü"
    home.mkdir(exist_ok=True)
    catalog = {"type": "sql", "path": str(home / "catalog.db"), "warehouse": str(home / "lake")}
    return {"catalog": catalog, "table": TABLE}


def client(options: Mapping[str, Any]) -> Catalog:
    """Returns PyIceberg's own catalog."""
    catalog = options["catalog"]
    uri: Any = URL.create("sqlite", database=catalog["path"])
    return SqlCatalog("default", uri=uri, warehouse=catalog["warehouse"])


def rows_of(options: Mapping[str, Any], schema: pa.Schema) -> list[dict[str, Any]]:
    """Reads the rows of a table in the order of its files."""
    found = client(options).load_table(options["table"]).scan().to_arrow()
    rows: list[dict[str, Any]] = found.select(schema.names).cast(schema).to_pylist()
    return rows
