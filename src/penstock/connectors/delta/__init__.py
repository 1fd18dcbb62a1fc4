"""Tables of Delta Lake. Imported by nothing: entry points name the classes. Start at `sink.py`."""

from penstock.connectors.delta.sink import DeltaSink

__all__ = ["DeltaSink"]
