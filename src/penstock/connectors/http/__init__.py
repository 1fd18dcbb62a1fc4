"""HTTP: requests that are received, and requests that are sent."""

from penstock.connectors.http.sink import HttpSink
from penstock.connectors.http.source import HttpSource

__all__ = ["HttpSink", "HttpSource"]
