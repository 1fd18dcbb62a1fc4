"""Where in its partitions a source stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.sdk import Offset

if TYPE_CHECKING:
    from pulsar import MessageId


class Id(NamedTuple):
    """A message's id within its partition: a later message has a greater one.

    `batch` is the place in its entry of a message that was sent with others, else -1.
    """

    ledger: int
    entry: int
    batch: int

    @classmethod
    def of(cls, found: Any) -> Id:
        """That of the client's id."""
        return cls(found.ledger_id(), found.entry_id(), found.batch_index())

    @property
    def pulsar(self) -> MessageId:
        """The client's id."""
        from pulsar import MessageId

        return MessageId.earliest if self == NONE else MessageId(-1, *self)

    @property
    def number(self) -> int:
        """A number that grows with it, where ledgers have less than 16 million entries."""
        return (self.ledger << 24 | self.entry) & (1 << 63) - 1

    def __str__(self) -> str:
        return ":".join(map(str, self))

    def before(self) -> Id:
        """An id between that of the message before and this one."""
        if self.batch > 0:
            return self._replace(batch=self.batch - 1)
        return Id(self.ledger, self.entry - 1, -1)


NONE = Id(-1, -1, -1)
"""Before the first message."""
END = Id((1 << 63) - 1, 0, 0)
"""After all messages."""


def ids(offset: Offset) -> dict[str, Id]:
    """The last message that was read of each partition, from a position's JSON."""
    return {name: Id(*at) for name, at in offset.items()}


def json(found: Mapping[str, Id]) -> dict[str, Any]:
    """The position as JSON: `{"persistent://public/default/orders": [17, 4, -1]}`."""
    return {name: list(found[name]) for name in sorted(found)}
