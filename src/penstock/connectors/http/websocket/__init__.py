"""WebSockets: frames that are received, and frames that are sent."""

from penstock.connectors.http.websocket.sink import WebsocketSink
from penstock.connectors.http.websocket.source import WebsocketSource

__all__ = ["WebsocketSink", "WebsocketSource"]
