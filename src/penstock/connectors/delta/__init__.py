"""Tables of Delta Lake. Imported by nothing: entry points name the classes. Start at `sink.py`
and `source.py`."""

from penstock.connectors.delta.sink import DeltaSink
from penstock.connectors.delta.source import DeltaSource

__all__ = ["DeltaSink", "DeltaSource"]
