"""Tables of Apache Iceberg. Imported by nothing: entry points name the classes. Start at `sink.py`
and `source.py`."""

from penstock.connectors.iceberg.sink import IcebergSink
from penstock.connectors.iceberg.source import IcebergSource

__all__ = ["IcebergSink", "IcebergSource"]
