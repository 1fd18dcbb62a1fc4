"""Reading a range of a partition in a task, by a reader that is gone with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from penstock.connectors.pulsar.position import Id

if TYPE_CHECKING:
    from pulsar import Client, Message

MOST = 1_000
"""Messages of one batch of rows."""
MOST_BYTES = 4 << 20
_AHEAD = 200
"""Messages that are fetched before they are wanted; they may have 5 MB each."""


class Range(NamedTuple):
    """The messages of a partition after `start`, up to `end`."""

    partition: str
    start: Id
    end: Id


def messages(client: Client, range_: Range, timeout: float) -> Iterator[Message]:
    """They, in order. The last is that of `end`, unless it is gone."""
    reader = client.create_reader(range_.partition, range_.start.pulsar, receiver_queue_size=_AHEAD)
    with closing(reader):
        at = range_.start
        while at < range_.end and reader.has_message_available():
            message = reader.read_next(round(timeout * 1000))
            at = Id.of(message.message_id())
            if at <= range_.end:
                yield message


def gathered(found: Iterator[Message]) -> Iterator[list[Message]]:
    """Messages in lists of a good size."""
    some: list[Message] = []
    size = 0
    for message in found:
        some.append(message)
        size += len(message.data())
        if len(some) == MOST or size >= MOST_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some
