"""A queue, and how it is named."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock.connectors.aws.access import AccessConfig
from penstock.connectors.aws.faults import faults


class QueueConfig(AccessConfig):
    queue: str = Field(min_length=1)
    """The queue: its name, or its URL. That of a FIFO queue ends in `.fifo`."""

    @property
    def fifo(self) -> bool:
        return self.queue.endswith(".fifo")


class Queue:
    """One queue, by a client that may be used by several threads. Raises Transient, Permanent."""

    def __init__(self, config: QueueConfig, *, wait: float = 0, connections: int = 10) -> None:
        self._client = config.client("sqs", wait=wait, connections=connections)
        self._url = config.queue
        if "://" not in config.queue:
            self._url = self._client_call("get_queue_url", QueueName=config.queue)["QueueUrl"]

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        """What the service answers to an operation on the queue."""
        return self._client_call(operation, QueueUrl=self._url, **given)

    def reached(self) -> None:
        """Asks for an attribute of the queue."""
        self.call("get_queue_attributes", AttributeNames=["QueueArn"])

    def close(self) -> None:
        """Lets go of its connections."""
        self._client.close()

    def _client_call(self, operation: str, **given: Any) -> dict[str, Any]:
        with faults("sqs"):
            answer: dict[str, Any] = getattr(self._client, operation)(**given)
        return answer
