"""Exchanges and queues that are made if they are not there, and what binds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from penstock.sdk import Config

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractQueue


class ExchangeDeclaration(Config):
    type: str = "topic"
    """How it finds the queues: direct, fanout, topic or headers, or what a plugin brings."""
    durable: bool = True
    """Whether it survives a restart of the broker."""
    auto_delete: bool = False
    """Whether it goes with the last queue that is bound to it."""
    arguments: dict[str, Any] = {}
    """More, such as `alternate-exchange`."""

    async def make(self, channel: AbstractChannel, name: str) -> None:
        """Makes the exchange unless it is there."""
        await channel.declare_exchange(
            name, self.type, durable=self.durable, auto_delete=self.auto_delete,
            arguments=self.arguments,
        )  # fmt: skip


class QueueDeclaration(Config):
    type: Literal["classic", "quorum"] = "classic"
    """Whether it is kept by one broker of a cluster, or by several."""
    durable: bool = True
    """Whether it survives a restart of the broker."""
    auto_delete: bool = False
    """Whether it goes when nobody receives from it any more."""
    arguments: dict[str, Any] = {}
    """More, such as `x-max-length` and `x-dead-letter-exchange`."""

    async def make(self, channel: AbstractChannel, name: str) -> AbstractQueue:
        """Makes the queue unless it is there."""
        return await channel.declare_queue(
            name, durable=self.durable, auto_delete=self.auto_delete,
            arguments={"x-queue-type": self.type, **self.arguments},
        )  # fmt: skip


class Binding(Config):
    exchange: str = Field(min_length=1)
    """The exchange whose messages the queue gets."""
    routing_key: str | list[str] = ""
    """Those with this routing key, or one of several; an exchange of the type topic knows `*` for a
    word and `#` for any number of them."""
    headers: dict[str, str | int | bool] = {}
    """Those with these headers, for an exchange of the type headers."""
    match: Literal["all", "any"] = "all"
    """Whether all of `headers` are needed, or one is enough."""
    declare: ExchangeDeclaration | None = None
    """Makes the exchange if it is not there: `{}`, or what it is to be."""

    async def make(self, channel: AbstractChannel, queue: AbstractQueue) -> None:
        """Binds the queue; once bound it stays so."""
        if self.declare is not None:
            await self.declare.make(channel, self.exchange)
        arguments: Any = {"x-match": self.match, **self.headers} if self.headers else None
        keys = [self.routing_key] if isinstance(self.routing_key, str) else self.routing_key
        for key in keys:
            await queue.bind(self.exchange, key, arguments=arguments)
