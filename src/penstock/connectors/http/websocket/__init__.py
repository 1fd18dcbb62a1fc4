"""WebSocket: a client that receives and sends messages."""

from penstock.connectors.http.websocket.sink import WebsocketSink
from penstock.connectors.http.websocket.source import WebsocketSource

__all__ = ["WebsocketSink", "WebsocketSource"]
