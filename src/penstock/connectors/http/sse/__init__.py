"""Server-sent events: a client that receives event streams."""

from penstock.connectors.http.sse.source import SseSource

__all__ = ["SseSource"]
