"""A durable consumer that nobody reads by: it shows how far a pipeline has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.connectors.nats.reading import MOST, Asking

if TYPE_CHECKING:
    from nats.aio.client import Client


class Progress:
    """A consumer that is sent the headers of what was read, to acknowledge all up to a position.

    That is what tools show, and what streams go by that keep messages until they are acknowledged.
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
        self._beyond: list[Any] = []

    async def begin(self, client: Client, start: int) -> Any:
        """What is known of the consumer, which is made if it is not there."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
        from nats.js.errors import NotFoundError

        streams = client.jetstream(timeout=self._timeout)
        try:
            return await streams.consumer_info(self._stream, self._name)
        except NotFoundError:
            config = ConsumerConfig(
                durable_name=self._name, deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=start, ack_policy=AckPolicy.ALL, filter_subject=self._filter,
                headers_only=True, max_ack_pending=-1, **self._settings,
            )  # fmt: skip
            return await streams.add_consumer(self._stream, config)

    async def commit(self, client: Client, end: int) -> None:
        """Acknowledges what comes before `end`."""
        known = await self.begin(client, end)
        at, pending = known.delivered.stream_seq + 1, known.num_pending
        asking = Asking(client, self._stream, self._name, self._timeout)
        await asking.begin()
        try:
            last = None
            found, self._beyond = self._beyond, []
            while True:
                for message in found:
                    sequence = message.metadata.sequence.stream
                    if sequence < end:
                        last = message
                    else:
                        self._beyond.append(message)
                    at, pending = max(at, sequence + 1), message.metadata.num_pending
                if at >= end or not pending:
                    break
                found = await asking.ask(min(MOST, end - at))
                if not found:
                    break
        finally:
            await asking.end()
        if last is not None:
            await client.request(last.reply, b"+ACK", timeout=self._timeout)
