"""Offsets of streams, the extent of a stream, and data loss."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import Offset


class StreamOffset(NamedTuple):
    """The next sequence number to read.

    `created` is the creation time of the stream, which differs when a stream is recreated under
    the same name. As JSON: `{"sequence": 17, "created": "2024-..."}`.
    """

    sequence: int
    created: str

    @classmethod
    def parse(cls, offset: Offset) -> StreamOffset:
        """Returns the offset of its JSON."""
        return cls(int(offset["sequence"]), str(offset["created"]))

    def to_json(self) -> dict[str, Any]:
        """Returns the offset as JSON."""
        return self._asdict()


class Extent(NamedTuple):
    """The sequence numbers in a stream, from `first` up to but not including `end`."""

    first: int
    end: int
    created: str
    deletion_is_loss: bool
    """Whether a deleted message is lost, and neither superseded nor acknowledged."""

    def first_unread(self, offset: StreamOffset) -> int:
        """Returns the first sequence number to read from an offset on."""
        return max(self.first, offset.sequence) if self.same_stream(offset) else self.first

    def same_stream(self, offset: StreamOffset) -> bool:
        """Returns whether the stream has not been recreated since the offset."""
        return self.created == offset.created

    def data_loss(self, stream: str, offset: StreamOffset) -> str | None:
        """Describes the unread messages that were deleted; None without data loss."""
        if not self.same_stream(offset) or offset.sequence > self.end:
            return f'stream "{stream}" was deleted and recreated'
        if not self.deletion_is_loss or offset.sequence >= self.first:
            return None
        return (
            f'messages {offset.sequence:,} to {self.first - 1:,} of stream "{stream}" were deleted '
            "before they were read"
        )


def data_loss_error(description: str) -> Permanent:
    """Returns the error that ends a source after data loss."""
    return Permanent(
        description,
        code="data-gone",
        hint="Set on_data_loss: continue to read the remaining messages, or reset with --fresh.",
    )


def data_loss_record(description: str) -> DecodeError:
    """Returns the error of the dead letter that records a gap."""
    return DecodeError(description, code="data-gone")
