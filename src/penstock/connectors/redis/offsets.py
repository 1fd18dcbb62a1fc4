"""Entry IDs of streams, and offsets: the last ID that was read of each stream."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Self

from penstock.sdk import Offset

_MAX = 2**64 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EntryId(NamedTuple):
    """The ID of a stream entry: milliseconds since the epoch, and a sequence number."""

    milliseconds: int
    sequence: int

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Returns the ID of a text such as `1700000000000-0`. Raises ValueError."""
        first, _, second = (text if isinstance(text, str) else text.decode()).partition("-")
        id_ = cls(int(first), int(second or 0))
        if not all(0 <= part <= _MAX for part in id_):
            raise ValueError(f'"{text!r}" is not a valid entry ID')
        return id_

    @classmethod
    def at_time(cls, time: datetime) -> Self:
        """Returns the lowest ID of a time."""
        return cls(max(0, round((time - _EPOCH).total_seconds() * 1000)), 0)

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.sequence}"

    @property
    def position(self) -> int:
        """The sequence number as a signed 64-bit integer."""
        return self.sequence if self.sequence < 2**63 else self.sequence - 2**64

    @classmethod
    def at_position(cls, milliseconds: int, position: int) -> Self:
        """Returns the ID of a time and a `position`."""
        return cls(milliseconds, position % 2**64)

    @property
    def previous(self) -> EntryId:
        """The ID directly below this ID."""
        if self.sequence:
            return EntryId(self.milliseconds, self.sequence - 1)
        return EntryId(self.milliseconds - 1, _MAX) if self.milliseconds else self


ZERO = EntryId(0, 0)
"""The ID below all entries."""


def ids_of(offset: Offset) -> dict[str, EntryId]:
    """Returns the ID of each stream in an offset."""
    return {stream: EntryId.parse(text) for stream, text in offset["streams"].items()}


def offset_of(ids: Mapping[str, EntryId]) -> Offset:
    """Returns the offset as JSON: `{"streams": {"orders": "1700000000000-0"}}`."""
    return {"streams": {stream: str(id_) for stream, id_ in sorted(ids.items())}}
