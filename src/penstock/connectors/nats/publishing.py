"""Messages on their way to the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from penstock.connectors.nats.client import Connection
from penstock.connectors.nats.confirming import Answer, Confirming
from penstock.connectors.nats.connection import flushed, refused
from penstock.connectors.nats.subjects import overlap
from penstock.sdk import Rejected

if TYPE_CHECKING:
    from nats.aio.client import Client

    from penstock.connectors.nats.sink import NatsSinkConfig

MOST = 1000
"""Messages that are sent before the first of them is confirmed."""
MOST_BYTES = 4 << 20
"""The same in bytes, if none of them is larger."""
_REFUSED = frozenset([10054, 10060])
"""Codes of what is wrong with a message: its size, and a subject of another stream."""


class Outgoing(NamedTuple):
    """A message to publish."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]

    @property
    def size(self) -> int:
        """Its bytes as the server counts them, and a few more."""
        lines = sum(len(f"{name}{value}".encode()) + 4 for name, value in self.headers.items())
        return len(self.payload) + (lines + 64 if lines else 0)


class Publisher:
    """A connection to the server, kept between batches. Raises Transient or Permanent."""

    def __init__(self, config: NatsSinkConfig) -> None:
        self._config = config
        self._connection = Connection(config)
        self._stream = config.confirming or ""
        self._confirming: Confirming | None = None

    def check(self) -> None:
        """That the server, and the stream that is to confirm, are there."""
        self._connection.run(self._doing, self._check)

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        """Returns when the server has each message, or refuses it for good."""
        call = self._publish if self._config.confirming is None else self._confirm
        answers: list[Rejected | None] = []
        for part in _parts(messages):
            answers += self._connection.run(self._doing, partial(call, part))
        return answers

    def close(self) -> None:
        """Leaves."""
        self._connection.close()

    @property
    def _doing(self) -> str:
        return f'write to stream "{self._stream}"' if self._stream else "publish"

    async def _check(self, nats: Client) -> None:
        if self._config.confirming is not None:
            await nats.jetstream(timeout=self._config.timeout).stream_info(self._stream)

    async def _publish(self, messages: Sequence[Outgoing], nats: Client) -> list[Rejected | None]:
        """The server has taken all when it answers a question that is asked after them."""
        answers = [_too_large(nats, message) for message in messages]
        for message, answer in zip(messages, answers, strict=True):
            if answer is None:
                headers = dict(message.headers) or None
                await nats.publish(message.subject, message.payload, headers=headers)
        await flushed(nats, self._config)
        return [
            answer or self._forbidden(message)
            for message, answer in zip(messages, answers, strict=True)
        ]

    async def _confirm(self, messages: Sequence[Outgoing], nats: Client) -> list[Rejected | None]:
        """JetStream answers each."""
        answers = [_too_large(nats, message) for message in messages]
        confirming = await self._confirmed(nats)
        waiting = {
            at: await confirming.publish(message.subject, message.payload, dict(message.headers))
            for at, message in enumerate(messages)
            if answers[at] is None
        }
        try:
            await flushed(nats, self._config)
            for at in waiting:
                answers[at] = self._forbidden(messages[at])
            allowed = {at: each for at, each in waiting.items() if answers[at] is None}
            await confirming.all(allowed.values())
        finally:
            confirming.forget()
        for at, future in allowed.items():
            answers[at] = await self._judge(nats, messages[at], future.result())
        return answers

    async def _confirmed(self, nats: Client) -> Confirming:
        if self._confirming is None or self._confirming.client is not nats:
            self._confirming = Confirming(nats, self._stream, self._config.timeout)
            await self._confirming.begin()
        return self._confirming

    async def _judge(self, nats: Client, message: Outgoing, answer: Answer) -> Rejected | None:
        """What an answer means. Raises Transient or Permanent where it is not the message's."""
        if not answer.code:
            return None
        if answer.err_code in _REFUSED:
            said = answer.description
            return Rejected(f'stream "{self._stream}" refuses it: {said}', code="refused")
        if answer.unheard and not await self._takes(nats, message.subject):
            return Rejected(
                f'stream "{self._stream}" has no subject "{message.subject}"', code="subject"
            )
        raise refused(self._doing, answer.code, answer.description)

    async def _takes(self, nats: Client, subject: str) -> bool:
        info = await nats.jetstream(timeout=self._config.timeout).stream_info(self._stream)
        return any(overlap(subject, each) for each in info.config.subjects or ())

    def _forbidden(self, message: Outgoing) -> Rejected | None:
        """Whether the server has complained of the subject."""
        said = f'publish to "{message.subject}"'.casefold()
        if any(said in str(error).casefold() for error in self._connection.heard):
            return Rejected(
                f'the user may not publish to "{message.subject}"', code="not-authorized"
            )
        return None


def _too_large(nats: Client, message: Outgoing) -> Rejected | None:
    if message.size <= nats.max_payload:
        return None
    return Rejected(
        f"the message has {message.size:,} bytes, and the server takes {nats.max_payload:,}",
        code="too-large",
        hint="the server's max_payload says how much",
    )


def _parts(messages: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Messages that are sent together."""
    part: list[Outgoing] = []
    size = 0
    for message in messages:
        if part and (len(part) == MOST or size + message.size > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(message)
        size += message.size
    if part:
        yield part
