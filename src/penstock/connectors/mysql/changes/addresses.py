"""UUID, INET4 and INET6 of MariaDB, which the log has as bytes, as the texts of the server."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from itertools import groupby


def uuid_text(data: bytes) -> str:
    """Returns the text of a UUID."""
    return str(uuid.UUID(bytes=data))


def inet4_text(data: bytes) -> str:
    """Returns the text of an IPv4 address."""
    return ".".join(map(str, data))


def inet6_text(data: bytes) -> str:
    """Returns the text of an IPv6 address.

    The first one of the longest gaps of zeros is `::`, also one of a single word. An address with
    an IPv4 address ends with its text.
    """
    words = [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]
    gaps, place = [], 0
    for is_zero, group in groupby(words, key=lambda word: word == 0):
        length = len([*group])
        gaps += [(length, -place)] if is_zero else []
        place += length
    if not gaps:
        return ":".join(f"{word:x}" for word in words)
    length, start = max(gaps)
    start = -start
    before, after = words[:start], words[start + length :]
    tail = [f"{word:x}" for word in after]
    if start == 0 and (length == 6 or (length == 5 and after[0] == 0xFFFF)):
        tail = [*tail[:-2], inet4_text(data[-4:])]
    return f"{':'.join(f'{word:x}' for word in before)}::{':'.join(tail)}"


TEXTS: Mapping[str, Callable[[bytes], str]] = {
    "uuid": uuid_text, "inet4": inet4_text, "inet6": inet6_text,
}  # fmt: skip
"""The text of bytes by the declared type."""
