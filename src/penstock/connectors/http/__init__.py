"""HTTP: a server that receives requests, and a client that sends them."""

from penstock.connectors.http.sink import HttpSink
from penstock.connectors.http.source import HttpSource

__all__ = ["HttpSink", "HttpSource"]
