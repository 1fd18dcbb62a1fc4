"""Changes of tables: a snapshot, then logical replication with the output plugin pgoutput.

`receiver.py` writes rows to the journal, in the order of the server's log. `source.py` reads them.
"""

from penstock.connectors.postgres.changes.source import PostgresChangesSource

__all__ = ["PostgresChangesSource"]
