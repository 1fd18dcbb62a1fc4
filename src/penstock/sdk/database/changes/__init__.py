"""Changes of tables: a snapshot in chunks by key, merged with the log of the server.

A connector defines a `ChangesReceiver` of the log and a `TableReceiver` of each table, which writes
rows to the journal in the order of the log, and a `ChangesSource`, which reads them. Of a table of
a SQL database this is a `TableChangesSource`.
"""

from penstock.sdk.database.changes.chunks import Chunk
from penstock.sdk.database.changes.config import ChangesConfig, ChangesOptions
from penstock.sdk.database.changes.loss import LostChanges, missing_table, truncated_table
from penstock.sdk.database.changes.measuring import measure_logs
from penstock.sdk.database.changes.progress import Confirmed, Progress
from penstock.sdk.database.changes.receiver import ChangesReceiver
from penstock.sdk.database.changes.rows import Key, Row, Transaction, Unsent, Value, has_unsent
from penstock.sdk.database.changes.schemas import SchemaWriter
from penstock.sdk.database.changes.source import ChangesSource, metadata_of
from penstock.sdk.database.changes.table import TableReceiver
from penstock.sdk.database.changes.table_source import TableChangesSource
from penstock.sdk.database.changes.truncations import TruncationWriter

__all__ = [
    "ChangesConfig", "ChangesOptions", "ChangesReceiver", "ChangesSource", "Chunk", "Confirmed",
    "Key", "LostChanges", "Progress", "Row", "SchemaWriter", "TableChangesSource",
    "TableReceiver", "Transaction", "TruncationWriter", "Unsent", "Value", "has_unsent",
    "measure_logs", "metadata_of", "missing_table", "truncated_table",
]  # fmt: skip
