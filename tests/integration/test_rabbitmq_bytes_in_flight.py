"""RabbitMQ: the bound of the bytes that a consumer holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from penstock.connectors.rabbitmq import RabbitmqSource, RabbitmqStreamSource, bytes_in_flight
from penstock.connectors.rabbitmq.client import open_channel
from penstock.connectors.rabbitmq.source import Consumer
from penstock.sdk import Context, Message, Read
from penstock.sdk.network.byte_budget import ByteBudget, Share
from servers.rabbitmq import Rabbit

SIZE, COUNT, BOUND = 100_000, 20, 250_000


class ObservedBudget(ByteBudget):
    """A budget with a record of its use and of the waiting readers."""

    def __init__(self) -> None:
        super().__init__(BOUND)
        self.largest = self.waiting = 0

    def resize(self, share: Share, size: int) -> None:
        super().resize(share, size)
        self.largest = max(self.largest, self.used)

    async def await_room(self, share: Share) -> None:
        self.waiting += 1
        try:
            await super().await_room(share)
        finally:
            self.waiting -= 1


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> list[ObservedBudget]:
    made: list[ObservedBudget] = []

    def make() -> ObservedBudget:
        made.append(ObservedBudget())
        return made[-1]

    monkeypatch.setattr(bytes_in_flight, "ByteBudget", make)
    return made


@pytest.fixture(params=["classic", "quorum"])
def queue(rabbitmq: Rabbit, request: pytest.FixtureRequest) -> Iterator[str]:
    name = rabbitmq.new_queue(request.param)
    yield name
    rabbitmq.delete(name)


@pytest.fixture
def stream(rabbitmq: Rabbit) -> Iterator[str]:
    name = rabbitmq.new_queue("stream")
    yield name
    rabbitmq.delete(name)


def payloads() -> list[bytes]:
    return [b"%03d" % number + b"x" * SIZE for number in range(COUNT)]


class HeldJournal:
    """A journal that completes appends when the connection is not read or all messages arrived."""

    def __init__(self, budgets: list[ObservedBudget]) -> None:
        self._budgets = budgets
        self._pending = 0
        self.messages: list[bytes] = []
        self.most_pending = 0
        self.complete = asyncio.Event()

    async def append(self, messages: list[Message]) -> None:
        self._pending += 1
        self.most_pending = max(self.most_pending, self._pending)
        self.messages += [bytes(message.payload or b"") for message in messages]
        while not self._budgets[0].waiting and len(self.messages) < COUNT:
            await asyncio.sleep(0.01)
        self._pending -= 1
        if len(self.messages) == COUNT:
            self.complete.set()


def test_queue_is_read_within_the_bound(
    rabbitmq: Rabbit, queue: str, budgets: list[ObservedBudget]
) -> None:
    rabbitmq.publish(queue, payloads())
    config = RabbitmqSource.config_type.model_validate({**rabbitmq.login, "queue": queue})

    async def receive() -> HeldJournal:
        async with open_channel(config) as channel:
            journal: Any = HeldJournal(budgets)
            await Consumer(config, "receive", journal).start(channel)
            async with asyncio.timeout(60):
                await journal.complete.wait()
            return journal

    journal = asyncio.run(receive())
    assert journal.messages == payloads()
    assert journal.most_pending <= 3
    assert BOUND / 2 < budgets[0].largest < BOUND + 2 * SIZE


def test_stream_is_read_within_the_bound(
    rabbitmq: Rabbit, stream: str, budgets: list[ObservedBudget]
) -> None:
    rabbitmq.publish(stream, payloads())
    given = {**rabbitmq.login, "stream": stream}
    source = RabbitmqStreamSource(
        RabbitmqStreamSource.config_type.model_validate(given), Context("tests", "node")
    )
    with closing(source):
        start = source.initial_offset()
        end = {"offset": 2}  # The messages after the end exceed the bound.
        for last in (source.latest_offset(start), end):
            found = [
                row["payload"]
                for partition in source.partitions(start, last)
                for batch in source.read(partition, Read())
                for row in batch.to_pylist()
            ]
            assert found == payloads()[: last["offset"]]
    reading = [budget for budget in budgets if budget.largest]
    assert len(reading) == 2
    assert max(budget.largest for budget in reading) < BOUND + 2 * SIZE
