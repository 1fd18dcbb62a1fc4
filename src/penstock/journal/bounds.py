"""Bounds of a journal: sizes and the fsync policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Bounds:
    """Limits in bytes of the journal, of its parts and of pending appends, and the fsync policy.

    A frame holds appends of up to `frame` bytes together, or one larger append. Of a message of
    more than `message` bytes only the head is stored; None is no limit.

    `flush` is `group` (appends share an fsync), `each` (an fsync for each append) or a number of
    seconds between fsyncs. In the last case an append returns immediately, and a power failure
    loses the appends since the last fsync.
    """

    size: int = 1 << 30
    segment: int = 64 << 20
    waiting: int = 64 << 20
    frame: int = 16 << 20
    message: int | None = None
    flush: Literal["each", "group"] | float = "group"


DEFAULT_BOUNDS = Bounds()
