"""Asynchronous publishing to a stream, and the acknowledgements of JetStream."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nats.aio.client import Client

_POLL_SECONDS = 0.5
_EXPECTED_STREAM = "Nats-Expected-Stream"
_NO_RESPONDERS = 503


class PublishAck(NamedTuple):
    """The response to a message: error code, JetStream error code and description."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    @property
    def no_responders(self) -> bool:
        """Whether no stream has the subject."""
        return self.code == _NO_RESPONDERS and not self.err_code


class AckedPublisher:
    """Publishes messages to a stream and awaits their acknowledgements.

    `publish_async` of the client never resolves the future of a rejected message (nats-py 2.16).
    """

    def __init__(self, client: Client, stream: str, timeout: float) -> None:
        self.client = client
        self._stream, self._timeout = stream, timeout
        self._inbox = client.new_inbox()
        self._numbers = itertools.count()
        self._pending: dict[str, asyncio.Future[PublishAck]] = {}

    async def subscribe(self) -> None:
        """Subscribes to the acknowledgements."""
        await self.client.subscribe(
            f"{self._inbox}.*", cb=self._on_ack, pending_msgs_limit=0, pending_bytes_limit=0
        )

    async def publish(
        self, subject: str, payload: bytes, headers: dict[str, str]
    ) -> asyncio.Future[PublishAck]:
        """Sends a message. Returns the future of its acknowledgement."""
        number = str(next(self._numbers))
        ack: asyncio.Future[PublishAck] = asyncio.get_running_loop().create_future()
        self._pending[number] = ack
        await self.client.publish(
            subject, payload, f"{self._inbox}.{number}", {**headers, _EXPECTED_STREAM: self._stream}
        )
        return ack

    async def await_acks(self, acks: Iterable[asyncio.Future[PublishAck]]) -> None:
        """Returns once all have arrived. Raises TimeoutError after a timeout without an arrival."""
        pending = set(acks)
        deadline = time.monotonic() + self._timeout
        while pending:
            done, pending = await asyncio.wait(pending, timeout=_POLL_SECONDS)
            if done:
                deadline = time.monotonic() + self._timeout
            elif not self.client.is_connected:
                raise ConnectionError("the connection was lost")
            elif time.monotonic() > deadline:
                raise TimeoutError("no acknowledgement within timeout")

    def clear(self) -> None:
        """Discards the pending futures."""
        self._pending.clear()

    async def _on_ack(self, message: Any) -> None:
        ack = self._pending.pop(message.subject.rpartition(".")[2], None)
        if ack is not None and not ack.done():
            ack.set_result(_parse_ack(message))


def _parse_ack(message: Any) -> PublishAck:
    status = (message.headers or {}).get("Status")
    if status is not None:
        return PublishAck(int(status), description="no stream has the subject")
    error = json.loads(message.data).get("error") or {}
    return PublishAck(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
