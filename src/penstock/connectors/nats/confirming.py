"""Publishing to a stream: JetStream answers each message."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nats.aio.client import Client

_LOOK = 0.5
_EXPECTED = "Nats-Expected-Stream"


class Answer(NamedTuple):
    """What JetStream says to a message: nothing if all is well."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    @property
    def unheard(self) -> bool:
        """Whether no stream listens to the subject."""
        return self.code == 503 and not self.err_code


class Confirming:
    """A connection's publishing to a stream, and the answers that come.

    The client's own `publish_async` never answers where JetStream refuses (nats-py 2.16).
    """

    def __init__(self, client: Client, stream: str, timeout: float) -> None:
        self.client = client
        self._stream, self._timeout = stream, timeout
        self._inbox = client.new_inbox()
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    async def begin(self) -> None:
        """Listens for answers."""
        await self.client.subscribe(
            f"{self._inbox}.*", cb=self._heard, pending_msgs_limit=0, pending_bytes_limit=0
        )

    async def publish(
        self, subject: str, payload: bytes, headers: dict[str, str]
    ) -> asyncio.Future[Answer]:
        """Sends a message; the answer comes later."""
        number = str(next(self._numbers))
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        await self.client.publish(
            subject, payload, f"{self._inbox}.{number}", {**headers, _EXPECTED: self._stream}
        )
        return answer

    async def all(self, answers: Iterable[asyncio.Future[Answer]]) -> None:
        """Returns when all are there. Raises TimeoutError if none comes for a while."""
        left = set(answers)
        until = time.monotonic() + self._timeout
        while left:
            done, left = await asyncio.wait(left, timeout=_LOOK)
            if done:
                until = time.monotonic() + self._timeout
            elif not self.client.is_connected:
                raise ConnectionError("the connection was lost")
            elif time.monotonic() > until:
                raise TimeoutError("messages are not confirmed")

    def forget(self) -> None:
        """Waits for no more answers."""
        self._waiting.clear()

    async def _heard(self, message: Any) -> None:
        answer = self._waiting.pop(message.subject.rpartition(".")[2], None)
        if answer is not None and not answer.done():
            answer.set_result(_answer(message))


def _answer(message: Any) -> Answer:
    status = (message.headers or {}).get("Status")
    if status is not None:
        return Answer(int(status), description="no stream has the subject")
    error = json.loads(message.data).get("error") or {}
    return Answer(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
