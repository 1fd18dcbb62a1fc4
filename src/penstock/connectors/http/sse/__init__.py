"""Server-sent events: streams of events that are received."""

from penstock.connectors.http.sse.source import SseSource

__all__ = ["SseSource"]
