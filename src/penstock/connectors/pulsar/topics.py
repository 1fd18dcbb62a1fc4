"""What is there: the partitions of topics, and their last messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.connectors.pulsar.position import END, NONE, Id
from penstock.connectors.pulsar.reading import Range, messages

if TYPE_CHECKING:
    from pulsar import Client

_AT_ONCE = 16
_SOON = 1_000
"""Milliseconds after which it is taken that the last message was sent in pieces."""


def partitions(client: Client, topics: Sequence[str]) -> list[str]:
    """The names of all partitions; a topic that has none is one."""
    return [name for topic in topics for name in client.get_topic_partitions(topic)]


def each(call: Callable[[str], Id], names: Iterable[str]) -> dict[str, Id]:
    """What a call finds in each partition; some are asked at once."""
    names = list(names)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(names, pool.map(call, names), strict=True))


def last(client: Client, partition: str, known: Id, timeout: float) -> Id:
    """The last message that a partition has, which is `known` or a later one."""
    from pulsar import Timeout

    with closing(client.create_reader(partition, known.pulsar, receiver_queue_size=1)) as reader:
        if not reader.has_message_available():
            return known
    try:
        return _last(client, partition)
    except Timeout:
        for message in messages(client, Range(partition, known, END), timeout):
            known = Id.of(message.message_id())
    return known


def _last(client: Client, partition: str) -> Id:
    """Raises Timeout if it was sent in pieces: what is there is the last of them."""
    from pulsar import MessageId

    reader = client.create_reader(
        partition, MessageId.latest, start_message_id_inclusive=True, receiver_queue_size=1
    )
    with closing(reader):
        return Id.of(reader.read_next(_SOON).message_id())


def since(client: Client, partition: str, at: datetime, timeout: float) -> Id:
    """What is before the first message that is not older; the last message if all are."""
    from pulsar import MessageId

    moment = at if at.tzinfo else at.replace(tzinfo=UTC)
    reader = client.create_reader(partition, MessageId.earliest, receiver_queue_size=1)
    with closing(reader):
        reader.seek(round(moment.timestamp() * 1000))
        if reader.has_message_available():
            return Id.of(reader.read_next(round(timeout * 1000)).message_id()).before()
    return last(client, partition, NONE, timeout)
