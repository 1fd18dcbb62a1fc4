"""Deduplication within a span of event time."""
