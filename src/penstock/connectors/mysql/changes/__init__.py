"""Changes of tables: a snapshot in chunks, then the binary log of the server.

`stream.py` reads the log, `events.py` gives its events a meaning, and `values.py` decodes rows.
`receiver.py` writes rows to the journal, in the order of the log. `source.py` reads them.
"""

from penstock.connectors.mysql.changes.source import MysqlChangesSource

__all__ = ["MysqlChangesSource"]
