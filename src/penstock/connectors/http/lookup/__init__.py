"""HTTP lookups: rows of a web service by key."""

from penstock.connectors.http.lookup.source import HttpLookupSource

__all__ = ["HttpLookupSource"]
