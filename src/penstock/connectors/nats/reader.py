"""Reading of streams with pull consumers: ranges in tasks, start times and reported progress."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.core.errors import Transient

if TYPE_CHECKING:
    from nats.aio.client import Client

StreamMessage = Any
_MAX_REQUEST_MESSAGES = 2_000
_MAX_REQUEST_BYTES = 8 << 20
"""The bytes of a request, unless the server allows larger messages."""
_INACTIVE_SECONDS = 300.0
"""The server deletes the consumer of a task after this time without a request."""
_MAX_HEADER_BYTES = 64 << 10
_NO_MESSAGES = ("404", "408")


@dataclass(frozen=True)
class SequenceRange:
    """The messages from `start` up to but not including `end` that match `filter` (None: all)."""

    start: int
    end: int
    filter: str | None = None
    data_loss: str | None = None
    """A description of deleted messages before `start`."""


class PullRequests:
    """Requests for messages of a pull consumer."""

    def __init__(self, client: Client, stream: str, consumer: str, timeout: float) -> None:
        self._client, self._timeout = client, timeout
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._messages: list[StreamMessage] = []
        self._status: Any = None
        self._requested = 0
        self._done = asyncio.Event()

    async def subscribe(self) -> None:
        """Subscribes to the responses."""
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(
            self._inbox, cb=self._on_message, pending_msgs_limit=0, pending_bytes_limit=0
        )

    async def fetch(self, count: int) -> list[StreamMessage]:
        """Returns up to `count` available messages. Raises TimeoutError and Transient."""
        self._messages, self._status, self._requested = [], None, count
        self._done.clear()
        max_bytes = max(_MAX_REQUEST_BYTES, 2 * (self._client.max_payload + _MAX_HEADER_BYTES))
        request = {"batch": count, "no_wait": True, "max_bytes": max_bytes}
        await self._client.publish(self._subject, json.dumps(request).encode(), self._inbox)
        previous_count = -1
        while not self._done.is_set():
            if previous_count == len(self._messages):
                raise TimeoutError
            previous_count = len(self._messages)
            try:
                async with asyncio.timeout(self._timeout):
                    await self._done.wait()
            except TimeoutError:
                continue
        if self._status is not None and not self._messages:
            self._check_status(self._status.headers)
        return self._messages

    async def unsubscribe(self) -> None:
        """Ends the subscription."""
        await self._subscription.unsubscribe()

    async def _on_message(self, message: StreamMessage) -> None:
        if message.reply:
            self._messages.append(message)
        else:
            self._status = message
        if self._status is not None or len(self._messages) == self._requested:
            self._done.set()

    def _check_status(self, headers: Any) -> None:
        if headers.get("Status") not in _NO_MESSAGES:
            raise Transient(
                f"could not read from NATS: {headers.get('Description', 'no description')}",
            )


class RangeReader:
    """Reads a range in order with an ephemeral consumer."""

    def __init__(self, stream: str, range_: SequenceRange, timeout: float) -> None:
        self._stream, self._range, self._timeout = stream, range_, timeout
        self._pending = 0
        self._next = range_.start

    async def open(self, client: Client) -> None:
        """Creates the consumer."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._range.start,
            ack_policy=AckPolicy.NONE, filter_subject=self._range.filter,
            inactive_threshold=_INACTIVE_SECONDS, mem_storage=True, num_replicas=1,
        )  # fmt: skip
        self._jetstream = client.jetstream(timeout=self._timeout)
        consumer = await self._jetstream.add_consumer(self._stream, config)
        self._consumer, self._pending = consumer.name, consumer.num_pending or 0
        self._requests = PullRequests(client, self._stream, consumer.name, self._timeout)
        await self._requests.subscribe()

    async def fetch(self, client: Client) -> list[StreamMessage]:
        """Returns the next messages; none at the end of the range."""
        if not self._pending or self._next >= self._range.end:
            return []
        count = min(_MAX_REQUEST_MESSAGES, self._pending, self._range.end - self._next)
        messages = await self._requests.fetch(count)
        if messages:
            last = messages[-1].metadata
            self._next, self._pending = last.sequence.stream + 1, last.num_pending
        return [
            message for message in messages if message.metadata.sequence.stream < self._range.end
        ]

    async def close(self, client: Client) -> None:
        """Deletes the consumer."""
        await self._requests.unsubscribe()
        await self._jetstream.delete_consumer(self._stream, self._consumer)


class ProgressConsumer:
    """A durable consumer that acknowledges all messages up to an offset.

    Tools show its progress, and streams with interest retention delete acknowledged messages. The
    consumer receives headers only.
    """

    def __init__(
        self,
        stream: str,
        name: str,
        filters: list[str],
        timeout: float,
        settings: Mapping[str, Any],
    ) -> None:
        self._stream, self._name, self._timeout = stream, name, timeout
        self._settings = settings
        self._filter = filters[0] if len(filters) == 1 else None
        self._uncommitted: list[StreamMessage] = []

    async def create(self, client: Client, start: int) -> Any:
        """Creates the consumer unless it exists. Returns its information."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
        from nats.js.errors import NotFoundError

        jetstream = client.jetstream(timeout=self._timeout)
        try:
            return await jetstream.consumer_info(self._stream, self._name)
        except NotFoundError:
            config = ConsumerConfig(
                durable_name=self._name, deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=start, ack_policy=AckPolicy.ALL, filter_subject=self._filter,
                headers_only=True, max_ack_pending=-1, **self._settings,
            )  # fmt: skip
            return await jetstream.add_consumer(self._stream, config)

    async def commit(self, client: Client, end: int) -> None:
        """Acknowledges all messages before `end`."""
        info = await self.create(client, end)
        next_sequence, pending = info.delivered.stream_seq + 1, info.num_pending
        requests = PullRequests(client, self._stream, self._name, self._timeout)
        await requests.subscribe()
        try:
            last = None
            messages, self._uncommitted = self._uncommitted, []
            while True:
                for message in messages:
                    sequence = message.metadata.sequence.stream
                    if sequence < end:
                        last = message
                    else:
                        self._uncommitted.append(message)
                    next_sequence = max(next_sequence, sequence + 1)
                    pending = message.metadata.num_pending
                if next_sequence >= end or not pending:
                    break
                messages = await requests.fetch(min(_MAX_REQUEST_MESSAGES, end - next_sequence))
                if not messages:
                    break
        finally:
            await requests.unsubscribe()
        if last is not None:
            await client.request(last.reply, b"+ACK", timeout=self._timeout)


async def find_sequence(
    client: Client, stream: str, time: datetime, end: int, timeout: float
) -> int:
    """Returns the sequence number of the first message at or after `time`; `end` without one."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    jetstream = client.jetstream(timeout=timeout)
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_TIME, ack_policy=AckPolicy.NONE, headers_only=True,
        opt_start_time=time, mem_storage=True, num_replicas=1, inactive_threshold=timeout,
    )  # fmt: skip
    consumer = await jetstream.add_consumer(stream, config)
    try:
        if not consumer.num_pending:
            return end
        subscription = await jetstream.pull_subscribe_bind(consumer.name, stream)
        (first,) = await subscription.fetch(1, timeout)
        await subscription.unsubscribe()
        return int(first.metadata.sequence.stream)
    finally:
        await jetstream.delete_consumer(stream, consumer.name)
