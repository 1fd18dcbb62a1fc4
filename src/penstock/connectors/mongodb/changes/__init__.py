"""Changes of collections: a snapshot in chunks by `_id`, then a change stream.

`stream.py` reads the stream, and `events.py` gives its events a meaning. `receiver.py` writes
documents to the journal, in the order of the stream. `source.py` reads them.
"""

from penstock.connectors.mongodb.changes.source import MongodbChangesSource

__all__ = ["MongodbChangesSource"]
