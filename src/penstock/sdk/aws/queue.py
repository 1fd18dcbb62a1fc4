"""A queue of SQS: its options and its client."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock.sdk.aws.client import AwsClient
from penstock.sdk.aws.config import AwsConfig

MAX_MESSAGES = 10
"""The largest number of messages of a request."""


class QueueConfig(AwsConfig):
    queue: str = Field(min_length=1)
    """The queue: its name or its URL. The name of a FIFO queue ends in `.fifo`."""

    @property
    def fifo(self) -> bool:
        """Whether the queue is a FIFO queue."""
        return self.queue.endswith(".fifo")


class Queue:
    """One queue, usable by several threads. Raises Transient and Permanent."""

    def __init__(self, config: QueueConfig, *, wait: float = 0, connections: int = 10) -> None:
        self._client = AwsClient(config, "sqs", wait=wait, connections=connections)
        self._url = config.queue
        if "://" not in config.queue:
            self._url = self._client.call("get_queue_url", QueueName=config.queue)["QueueUrl"]

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Returns the response to an operation on the queue."""
        return self._client.call(operation, QueueUrl=self._url, **parameters)

    def check(self) -> None:
        """Requests an attribute of the queue. Raises Transient or Permanent."""
        self.call("get_queue_attributes", AttributeNames=["QueueArn"])

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()
