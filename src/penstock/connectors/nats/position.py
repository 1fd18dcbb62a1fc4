"""Where in a stream a source stands."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import Offset


class Position(NamedTuple):
    """The next sequence number of a stream.

    `created` tells the stream from another of the same name that was made after it was deleted.
    As JSON: `{"sequence": 17, "created": "2024-..."}`.
    """

    sequence: int
    created: str

    @classmethod
    def of(cls, offset: Offset) -> Position:
        """A position from its JSON."""
        return cls(int(offset["sequence"]), str(offset["created"]))

    def json(self) -> dict[str, Any]:
        """The position as JSON."""
        return self._asdict()


class Extent(NamedTuple):
    """What a stream has: from `first` until before `end`."""

    first: int
    end: int
    created: str
    forgets: bool
    """Whether messages that are gone are lost: not superseded, and not done with."""

    def start(self, position: Position) -> int:
        """The first message to read from a position on."""
        return max(self.first, position.sequence) if self.same(position) else self.first

    def same(self, position: Position) -> bool:
        """Whether it is the stream that the position is in."""
        return self.created == position.created

    def loss(self, stream: str, position: Position) -> str | None:
        """What should have been read from a position on and is gone; None if all is there."""
        if not self.same(position) or position.sequence > self.end:
            return f'stream "{stream}" is another than before: it was deleted and made again'
        if not self.forgets or position.sequence >= self.first:
            return None
        return (
            f'messages {position.sequence:,} to {self.first - 1:,} of stream "{stream}" are gone: '
            "deleted before being read"
        )


def lost(what: str) -> Permanent:
    """The error that ends a source which must not miss anything."""
    return Permanent(
        what,
        code="data-gone",
        hint="on_data_loss: skip goes on with what is there; --fresh starts over",
    )


def gone(what: str) -> DecodeError:
    """The dead letter in place of what is gone."""
    return DecodeError(what, code="data-gone")
