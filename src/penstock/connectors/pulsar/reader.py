"""Reads partitions by message ID: their ends, ranges of messages, and progress of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from penstock.connectors.pulsar.offsets import AFTER_LAST, BEFORE_FIRST, MessagePosition
from penstock.connectors.pulsar.prefetch import Prefetch

if TYPE_CHECKING:
    from pulsar import Client, Consumer, Message

MAX_BATCH_RECORDS = 1_000
"""The largest number of messages of a batch of rows."""
MAX_BATCH_SIZE = 4 << 20
_PARALLEL_PARTITIONS = 16
_LAST_MESSAGE_TIMEOUT = 1_000
"""Milliseconds to wait for the last message, which does not arrive if it is chunked."""


class Range(NamedTuple):
    """The messages of a partition after `start`, up to and including `end`."""

    partition: str
    start: MessagePosition
    end: MessagePosition


def list_partitions(client: Client, topics: Sequence[str]) -> list[str]:
    """Returns the names of all partitions; a topic without partitions is one partition."""
    return [name for topic in topics for name in client.get_topic_partitions(topic)]


def map_partitions(
    find: Callable[[str], MessagePosition], partitions: Iterable[str]
) -> dict[str, MessagePosition]:
    """Returns the result of `find` for each partition, computed in parallel."""
    names = list(partitions)
    with ThreadPoolExecutor(_PARALLEL_PARTITIONS) as pool:
        return dict(zip(names, pool.map(find, names), strict=True))


def last_position(
    client: Client, partition: str, start: MessagePosition, timeout: float
) -> MessagePosition:
    """Returns the position of the last message, at or after `start`."""
    from pulsar import Timeout

    reader = client.create_reader(partition, start.message_id, receiver_queue_size=1)
    with closing(reader):
        if not reader.has_message_available():
            return start
    try:
        return _last_message(client, partition)
    except Timeout:
        for message in read_range(client, Range(partition, start, AFTER_LAST), timeout):
            start = MessagePosition.of(message.message_id())
    return start


def position_at_time(
    client: Client, partition: str, time: datetime, timeout: float
) -> MessagePosition:
    """Returns the position before the first message published at or after `time`.

    Returns the last position if all messages are older.
    """
    from pulsar import MessageId

    reader = client.create_reader(partition, MessageId.earliest, receiver_queue_size=1)
    with closing(reader):
        reader.seek(round(time.timestamp() * 1000))
        if reader.has_message_available():
            message = reader.read_next(round(timeout * 1000))
            return MessagePosition.of(message.message_id()).predecessor()
    return last_position(client, partition, BEFORE_FIRST, timeout)


def read_range(client: Client, range_: Range, timeout: float) -> Iterator[Message]:
    """Yields the messages of a range in order. The last is the message at `end`, if it exists."""
    prefetch = Prefetch()
    position = range_.start
    while True:
        reader = client.create_reader(
            range_.partition, position.message_id, receiver_queue_size=prefetch.count
        )
        with closing(reader):
            while position < range_.end and reader.has_message_available():
                message = reader.read_next(round(timeout * 1000))
                position = MessagePosition.of(message.message_id())
                if position <= range_.end:
                    yield message
                if prefetch.observe(len(message.data())):
                    break
            else:
                return


def batch_messages(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Yields messages in lists of limited length and size."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        batch.append(message)
        size += len(message.data())
        if len(batch) == MAX_BATCH_RECORDS or size >= MAX_BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def create_subscription(client: Client, partitions: Iterable[str], subscription: str) -> None:
    """Creates a durable subscription, so that Pulsar retains the messages of the partitions."""
    for name in partitions:
        with _subscribe(client, name, subscription):
            pass


def acknowledge(
    client: Client, positions: Mapping[str, MessagePosition], subscription: str
) -> None:
    """Acknowledges all messages up to the positions."""
    for name, position in positions.items():
        if position == BEFORE_FIRST:
            continue
        with _subscribe(client, name, subscription) as consumer:
            last = MessagePosition.of(consumer.get_last_message_id())
            if position.batch < 0 or position >= last:
                entry = position._replace(batch=-1)
            else:
                entry = MessagePosition(position.ledger, position.entry - 1, -1)
            consumer.acknowledge_cumulative(entry.message_id)


@contextmanager
def _subscribe(client: Client, partition: str, subscription: str) -> Iterator[Consumer]:
    """Yields a consumer that receives no messages."""
    from pulsar import ConsumerType, InitialPosition

    consumer = client.subscribe(
        partition, subscription, ConsumerType.Failover, receiver_queue_size=0,
        initial_position=InitialPosition.Earliest,
    )  # fmt: skip
    try:
        yield consumer
    finally:
        consumer.close()


def _last_message(client: Client, partition: str) -> MessagePosition:
    """Returns the position of the last message. Raises Timeout if the message is chunked."""
    from pulsar import MessageId

    reader = client.create_reader(
        partition, MessageId.latest, start_message_id_inclusive=True, receiver_queue_size=1
    )
    with closing(reader):
        return MessagePosition.of(reader.read_next(_LAST_MESSAGE_TIMEOUT).message_id())
