"""A durable subscription that nobody reads by: it shows progress, and keeps what is not done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.connectors.pulsar.position import NONE, Id

if TYPE_CHECKING:
    from pulsar import Client, Consumer


def hold(client: Client, names: Iterable[str], subscription: str) -> None:
    """From now on Pulsar keeps the messages that these partitions have."""
    for name in names:
        with _subscribed(client, name, subscription):
            pass


def let_go(client: Client, done: Mapping[str, Id], subscription: str) -> None:
    """Acknowledges all messages up to these."""
    for name, at in done.items():
        if at == NONE:
            continue
        with _subscribed(client, name, subscription) as consumer:
            whole = at.batch < 0 or at >= Id.of(consumer.get_last_message_id())
            entry = at._replace(batch=-1) if whole else Id(at.ledger, at.entry - 1, -1)
            consumer.acknowledge_cumulative(entry.pulsar)


@contextmanager
def _subscribed(client: Client, name: str, subscription: str) -> Iterator[Consumer]:
    """A consumer that takes nothing, and leaves the subscription to others."""
    from pulsar import ConsumerType, InitialPosition

    consumer = client.subscribe(
        name, subscription, ConsumerType.Failover, receiver_queue_size=0,
        initial_position=InitialPosition.Earliest,
    )  # fmt: skip
    try:
        yield consumer
    finally:
        consumer.close()
