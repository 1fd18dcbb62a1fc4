"""UDP: messages in datagrams."""

from penstock.connectors.udp.sink import UdpSink
from penstock.connectors.udp.source import UdpSource

__all__ = ["UdpSink", "UdpSource"]
