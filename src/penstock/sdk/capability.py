"""Capabilities of components, for the planner, the contract suite and the docs."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """A capability that a component declares and the contract suite verifies."""

    REPLAY = "replay"
    """A range can be read again and returns the same rows."""
    LIMIT = "limit"
    """The size of a batch can be limited."""
    BOUNDED = "bounded"
    """The input ends."""
    ORDERED = "ordered"
    """One task reads or writes records in order."""
    TAIL = "tail"
    """Data that arrives during a run is read."""
    LOOKUP = "lookup"
    """A stream can be joined with the current rows (`lookup: true`)."""
    LOOKUP_BY_KEY = "lookup_by_key"
    """A stream can be joined with the current rows of its keys (`lookup: true`)."""
    BYTES = "bytes"
    """Records are payloads, which a format decodes into rows and encodes from rows."""
    ROWS = "rows"
    """Records are rows."""
    EXACTLY_ONCE = "exactly_once"
    """A batch that is written twice is stored once."""
    UPSERT = "upsert"
    """A row replaces the row with the same primary key."""
    DELETE = "delete"
    """Rows can be removed by primary key."""
    REPLACE = "replace"
    """A batch replaces all rows."""
    TRUNCATE = "truncate"
    """All rows can be removed before those of a batch."""
    TRANSACTIONS = "transactions"
    """A batch becomes visible as a whole."""
