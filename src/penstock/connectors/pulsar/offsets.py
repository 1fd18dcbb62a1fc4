"""Offsets of Pulsar topics: the ID of the last message read of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.sdk import Offset

if TYPE_CHECKING:
    from pulsar import MessageId


class MessagePosition(NamedTuple):
    """A message ID within a partition; IDs grow in the order of the messages.

    `batch` is the index in a batch; -1 for a message that is not part of a batch.
    """

    ledger: int
    entry: int
    batch: int

    @classmethod
    def of(cls, id_: Any) -> MessagePosition:
        """Returns the position of a message ID of the client library."""
        return cls(id_.ledger_id(), id_.entry_id(), id_.batch_index())

    @classmethod
    def parse(cls, text: str) -> MessagePosition:
        """Returns the position of a text `LEDGER:ENTRY` or `LEDGER:ENTRY:BATCH`."""
        ledger, entry, *batch = map(int, text.split(":"))
        return cls(ledger, entry, batch[0] if batch else -1)

    @property
    def message_id(self) -> MessageId:
        """The message ID of the client library."""
        from pulsar import MessageId

        return MessageId.earliest if self == BEFORE_FIRST else MessageId(-1, *self)

    @property
    def number(self) -> int:
        """A number that grows with the ID, for ledgers of less than 16 million entries."""
        return (self.ledger << 24 | self.entry) & (1 << 63) - 1

    def __str__(self) -> str:
        return ":".join(map(str, self))

    def predecessor(self) -> MessagePosition:
        """Returns a position after the previous message and before this one."""
        if self.batch > 0:
            return self._replace(batch=self.batch - 1)
        return MessagePosition(self.ledger, self.entry - 1, -1)


BEFORE_FIRST = MessagePosition(-1, -1, -1)
"""The position before the first message."""
AFTER_LAST = MessagePosition((1 << 63) - 1, 0, 0)
"""The position after all messages."""


def parse_offset(offset: Offset) -> dict[str, MessagePosition]:
    """Returns the position of the last message read of each partition."""
    return {name: MessagePosition(*position) for name, position in offset.items()}


def offset_json(positions: Mapping[str, MessagePosition]) -> dict[str, Any]:
    """Returns positions as JSON: `{"persistent://public/default/orders": [17, 4, -1]}`."""
    return {name: list(positions[name]) for name in sorted(positions)}
