"""Reading a range of a stream in a task, by a consumer that is gone with it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.core.errors import Transient

if TYPE_CHECKING:
    from nats.aio.client import Client

Msg = Any
MOST = 2_000
"""Messages that are asked for at once."""
MOST_BYTES = 8 << 20
"""The same in bytes, where the server allows no larger messages."""
_IDLE = 300.0
"""After so many seconds without a question the server lets go of a consumer."""
_LARGEST_HEADER = 64 << 10
_NO_MORE = ("404", "408")


@dataclass(frozen=True)
class Range:
    """The messages from `start` until before `end` that `filter` matches; all, if it is None."""

    start: int
    end: int
    filter: str | None = None
    lost: str | None = None
    """What should have been read before `start` and is gone."""


class Asking:
    """Asks a pull consumer for messages, a few at a time."""

    def __init__(self, client: Client, stream: str, consumer: str, timeout: float) -> None:
        self._client, self._timeout = client, timeout
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._found: list[Msg] = []
        self._status: Msg = None
        self._wanted = 0
        self._done = asyncio.Event()

    async def begin(self) -> None:
        """Listens for what is sent."""
        self._inbox = self._client.new_inbox()
        self._listening = await self._client.subscribe(
            self._inbox, cb=self._took, pending_msgs_limit=0, pending_bytes_limit=0
        )

    async def ask(self, count: int) -> list[Msg]:
        """At most so many messages; none if there are none now."""
        self._found, self._status, self._wanted = [], None, count
        self._done.clear()
        room = max(MOST_BYTES, 2 * (self._client.max_payload + _LARGEST_HEADER))
        asked = {"batch": count, "no_wait": True, "max_bytes": room}
        await self._client.publish(self._subject, json.dumps(asked).encode(), self._inbox)
        seen = -1
        while not self._done.is_set():
            if seen == len(self._found):
                raise TimeoutError
            seen = len(self._found)
            try:
                async with asyncio.timeout(self._timeout):
                    await self._done.wait()
            except TimeoutError:
                continue
        if self._status is not None and not self._found:
            self._judge(self._status.headers)
        return self._found

    async def end(self) -> None:
        """Listens no more."""
        await self._listening.unsubscribe()

    async def _took(self, message: Msg) -> None:
        if message.reply:
            self._found.append(message)
        else:
            self._status = message
        if self._status is not None or len(self._found) == self._wanted:
            self._done.set()

    def _judge(self, status: Any) -> None:
        if status.get("Status") not in _NO_MORE:
            raise Transient(
                f"could not read from NATS: {status.get('Description', 'no reason was given')}",
                code="jetstream",
            )


class Pull:
    """Messages of a range, as they are asked for, in order."""

    def __init__(self, stream: str, range_: Range, timeout: float) -> None:
        self._stream, self._range, self._timeout = stream, range_, timeout
        self._pending = 0
        self._at = range_.start

    async def begin(self, client: Client) -> None:
        """Makes the consumer, which remembers nothing."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._range.start,
            ack_policy=AckPolicy.NONE, filter_subject=self._range.filter,
            inactive_threshold=_IDLE, mem_storage=True, num_replicas=1,
        )  # fmt: skip
        self._streams = client.jetstream(timeout=self._timeout)
        made = await self._streams.add_consumer(self._stream, config)
        self._name, self._pending = made.name, made.num_pending or 0
        self._asking = Asking(client, self._stream, made.name, self._timeout)
        await self._asking.begin()

    async def next(self, client: Client) -> list[Msg]:
        """Some more messages; none after the last."""
        if not self._pending or self._at >= self._range.end:
            return []
        found = await self._asking.ask(min(MOST, self._pending, self._range.end - self._at))
        if found:
            last = found[-1].metadata
            self._at, self._pending = last.sequence.stream + 1, last.num_pending
        return [each for each in found if each.metadata.sequence.stream < self._range.end]

    async def end(self, client: Client) -> None:
        """Lets go of the consumer, as the server would later."""
        await self._asking.end()
        await self._streams.delete_consumer(self._stream, self._name)
