"""HTTP that is asked again and again."""

from penstock.connectors.http.poll.source import HttpPollSource

__all__ = ["HttpPollSource"]
