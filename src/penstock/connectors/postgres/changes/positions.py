"""Positions of the log and snapshots as PostgreSQL writes them."""

from __future__ import annotations


def lsn(text: str) -> int:
    """Returns a position of the log, written as `16/B374D848`, as a number."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(position: int) -> str:
    """Returns a position of the log as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFF_FFFF:X}"


def snapshot_visibility(text: str) -> tuple[int, int, frozenset[int]]:
    """Parses a snapshot `xmin:xmax:xip_list`, whose transactions are numbers of 32 bits here."""
    first, last, running = text.split(":")
    numbers = [int(number) & 0xFFFF_FFFF for number in running.split(",") if number]
    return int(first) & 0xFFFF_FFFF, int(last) & 0xFFFF_FFFF, frozenset(numbers)
