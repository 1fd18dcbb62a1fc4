"""What a component can do: read by the planner, the contract suite and the docs."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """Declared by each component; the contract suite holds it to what it declares."""

    REPLAY = "replay"
    """Reading a range twice gives the same rows."""
    LIMIT = "limit"
    """The size of a batch can be limited."""
    BOUNDED = "bounded"
    """The input ends."""
    ORDERED = "ordered"
    """What one task reads or writes keeps its order."""
    TAIL = "tail"
    """Data that arrives while a pipeline runs is picked up."""
    BYTES = "bytes"
    """Carries payloads; a format turns them into rows and back."""
    ROWS = "rows"
    """Carries rows."""
    EXACTLY_ONCE = "exactly_once"
    """A batch written twice is there once."""
    UPSERT = "upsert"
    """Rows replace those with the same primary key."""
    DELETE = "delete"
    """Rows can be removed by primary key."""
    TRANSACTIONS = "transactions"
    """A batch becomes visible as a whole."""
