"""HTTP polling: a client that requests a URL at an interval."""

from penstock.connectors.http.poll.source import HttpPollSource

__all__ = ["HttpPollSource"]
