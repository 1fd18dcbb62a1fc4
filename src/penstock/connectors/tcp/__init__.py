"""TCP: messages in byte streams."""

from penstock.connectors.tcp.sink import TcpSink
from penstock.connectors.tcp.source import TcpSource

__all__ = ["TcpSink", "TcpSource"]
