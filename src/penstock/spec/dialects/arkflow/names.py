"""Names of the nodes of streams, whose ids and inputs may have any name."""

from __future__ import annotations

import re
from zlib import crc32

from penstock.core.names import MAX_LENGTH

_OTHER = re.compile(r"[^A-Za-z0-9_]")


class NodeNames:
    """Names of nodes, each of which is given once. Upper and lower case are the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, text: str) -> str:
        """Returns a valid name like a text: with a number if it is taken, shorter if it is long."""
        first = _OTHER.sub("_", text)
        if not first[0].isalpha():
            first = f"stream_{first.lstrip('_')}"
        name, number = _shortened(first), 1
        while name.lower() in self._taken:
            number += 1
            name = _shortened(f"{first}_{number}")
        self._taken.add(name.lower())
        return name


def _shortened(name: str) -> str:
    if len(name) <= MAX_LENGTH:
        return name
    checksum = f"_{crc32(name.encode()):08x}"
    return name[: MAX_LENGTH - len(checksum)] + checksum
