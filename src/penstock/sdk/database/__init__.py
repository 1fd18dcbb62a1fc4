"""Parts of connectors to SQL databases.

A connector defines a `Dialect` (quotation, parameters, types) and a `Connection` (statements in a
transaction). `DatabaseSink` and `TableSource` do the rest: creation and comparison of tables, bulk
writes with dead letters, upserts, the ledger of committed batches, and reading by cursor columns.
"""

from penstock.sdk.database.config import (
    ConflictConfig,
    DatabaseSinkConfig,
    RangesConfig,
    TableSourceConfig,
)
from penstock.sdk.database.connection import Connection, DbapiConnection
from penstock.sdk.database.cursor import Cursor
from penstock.sdk.database.dialect import Dialect
from penstock.sdk.database.ledger import Ledger
from penstock.sdk.database.names import TableName
from penstock.sdk.database.ranged_source import RangedSource
from penstock.sdk.database.sink import DatabaseSink, upserts_only
from penstock.sdk.database.source import TableSource
from penstock.sdk.database.table_sink import TableSink
from penstock.sdk.database.types import TypeMap

__all__ = [
    "ConflictConfig", "Connection", "Cursor", "DatabaseSink", "DatabaseSinkConfig",
    "DbapiConnection", "Dialect", "Ledger", "RangedSource", "RangesConfig", "TableName",
    "TableSink", "TableSource", "TableSourceConfig", "TypeMap", "upserts_only",
]  # fmt: skip
