"""Where a source of a stream begins that has no position yet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from penstock.sdk import Config

if TYPE_CHECKING:
    from nats.aio.client import Client


class StartAt(Config):
    """A place to start from: a time, or a sequence number."""

    timestamp: datetime | None = None
    """At the first message that is not older. Without a zone it is UTC."""
    sequence: int | None = Field(default=None, ge=1)
    """At the message with this number, or the first after it that is there."""

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.timestamp is None) == (self.sequence is None):
            raise ValueError("give either timestamp or sequence")
        return self


Start = Literal["earliest", "latest"] | StartAt


async def since(client: Client, stream: str, at: datetime, end: int, timeout: float) -> int:
    """The first message that is not older; `end` if there is none."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    streams = client.jetstream(timeout=timeout)
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_TIME, ack_policy=AckPolicy.NONE, headers_only=True,
        opt_start_time=at if at.tzinfo else at.replace(tzinfo=UTC), mem_storage=True,
        num_replicas=1, inactive_threshold=timeout,
    )  # fmt: skip
    made = await streams.add_consumer(stream, config)
    try:
        if not made.num_pending:
            return end
        reading = await streams.pull_subscribe_bind(made.name, stream)
        (first,) = await reading.fetch(1, timeout)
        await reading.unsubscribe()
        return int(first.metadata.sequence.stream)
    finally:
        await streams.delete_consumer(stream, made.name)
