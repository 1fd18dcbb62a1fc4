"""ZeroMQ sockets."""

from penstock.connectors.zeromq.sink import ZeromqSink
from penstock.connectors.zeromq.source import ZeromqSource

__all__ = ["ZeromqSink", "ZeromqSource"]
