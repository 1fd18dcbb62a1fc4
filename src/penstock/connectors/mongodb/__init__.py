"""Collections of MongoDB databases."""

from penstock.connectors.mongodb.sink import MongodbSink
from penstock.connectors.mongodb.source import MongodbSource

__all__ = ["MongodbSink", "MongodbSource"]
