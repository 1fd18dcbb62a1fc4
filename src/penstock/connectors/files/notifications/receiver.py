"""Receives notifications. A message is deleted once its files are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

import structlog

from penstock.connectors.files.notifications.config import NotificationsConfig
from penstock.connectors.files.notifications.events import UnknownMessage, created_objects
from penstock.core.errors import Transient
from penstock.sdk.aws.queue import MAX_MESSAGES, Queue

logger = structlog.get_logger(__name__)

MAX_REQUESTS = 100
"""The number of requests after which received messages are recorded."""
_LAST_REQUEST_SECONDS = 1
"""The wait of a request that finds the end of the queue. Without a wait a part of it is asked."""


@dataclass
class Received:
    """Received messages: the URLs of the created objects, and receipts."""

    urls: list[str] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    is_end: bool = False
    """Whether the queue had no further message, or only those sent after the start of the drain."""


class Receiver:
    """The consumer of a queue of notifications. `watch` states whether the run does not end."""

    def __init__(self, config: NotificationsConfig, *, watch: bool) -> None:
        self._config = config
        self._watch = watch
        self._wait = 0 if watch else _LAST_REQUEST_SECONDS
        self._queue: Queue | None = None
        self._next = 0.0

    def is_due(self) -> bool:
        """Returns whether the interval after the last messages is over."""
        return monotonic() >= self._next

    def check(self) -> None:
        """Requests an attribute of the queue. Raises Transient or Permanent."""
        self._open().check()

    def drain(self, record: Callable[[Sequence[str]], None]) -> None:
        """Passes the URLs of created objects to `record`, which records their files durably, and
        then deletes the messages.

        Ends when the queue has no message of before the call. With `watch` it ends after
        `MAX_REQUESTS`, and is due again.
        """
        start = time()
        while True:
            received = self._receive(start)
            record(received.urls)
            self._delete(received.receipts)
            if received.is_end or self._watch or not received.receipts:
                break
        if received.is_end:
            self._next = monotonic() + self._config.interval

    def close(self) -> None:
        """Closes the connections."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _receive(self, start: float) -> Received:
        received = Received()
        deadline = monotonic() + self._config.visibility_timeout / 2
        for _ in range(MAX_REQUESTS):
            response = self._open().call(
                "receive_message",
                MaxNumberOfMessages=MAX_MESSAGES,
                WaitTimeSeconds=self._wait,
                VisibilityTimeout=round(self._config.visibility_timeout),
                MessageSystemAttributeNames=["SentTimestamp"],
            )
            messages = response.get("Messages", ())
            for message in messages:
                self._add(message, received)
            received.is_end = all(_sent(message) > start for message in messages)
            if received.is_end or monotonic() > deadline:
                break
        return received

    def _add(self, message: Mapping[str, Any], received: Received) -> None:
        try:
            received.urls += created_objects(message["Body"])
        except UnknownMessage as error:
            logger.warning(
                f"a message of the queue {self._config.queue} is left there: {error}",
                message_id=message["MessageId"],
            )
        else:
            received.receipts.append(message["ReceiptHandle"])

    def _delete(self, receipts: Sequence[str]) -> None:
        """Deletes messages. A message that is not deleted is received again, without effect."""
        for start in range(0, len(receipts), MAX_MESSAGES):
            entries = [
                {"Id": str(index), "ReceiptHandle": receipt}
                for index, receipt in enumerate(receipts[start : start + MAX_MESSAGES])
            ]
            with suppress(Transient):
                self._open().call("delete_message_batch", Entries=entries)

    def _open(self) -> Queue:
        if self._queue is None:
            self._queue = Queue(self._config, wait=self._wait)
        return self._queue


def _sent(message: Mapping[str, Any]) -> float:
    """Returns the time when a message was sent, in seconds since 1970."""
    return int(message["Attributes"]["SentTimestamp"]) / 1000
