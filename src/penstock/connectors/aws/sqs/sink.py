"""The sink of SQS queues."""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.aws.sqs.queue import Queue, QueueConfig
from penstock.connectors.aws.sqs.writing import MOST, SqsWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Duration, Sink, Writer
from penstock.sdk.kit.template import Template


class SqsSinkConfig(QueueConfig):
    group: Template | None = None
    """The group of a message, whose messages keep their order; a FIFO queue needs it. `{column}`
    in it is replaced by the row's value."""
    deduplication_id: Template | None = None
    """What a FIFO queue tells messages apart by: one that it had in the last five minutes is not
    taken again. Without it the queue's content-based deduplication is needed."""
    delay: Duration | None = Field(default=None, ge=0, le=900)
    """How long messages stay hidden at first; by default as the queue says. Not for FIFO queues."""
    attributes: dict[str, Template] = Field(default={}, max_length=10)
    """Attributes of messages; `{column}` in them is replaced by the row's value."""
    retry: Duration = Field(default=30.0, ge=0)
    """How long messages are sent again that the service could not take."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.fifo and self.group is None:
            raise ValueError("a FIFO queue needs group")
        if self.fifo and self.delay is not None:
            raise ValueError("delay does not go together with a FIFO queue")
        if not self.fifo and self.deduplication_id is not None:
            raise ValueError("deduplication_id is for FIFO queues, whose name ends in .fifo")
        return self


class SqsSink(Sink[SqsSinkConfig]):
    """Sends rows to a queue of Amazon SQS, ten at a time.

    What the service could not take is sent again; what it refuses by itself, such as a message that
    is too large, becomes a dead letter. A FIFO queue with a `deduplication_id` drops what is
    repeated within five minutes.

    ```yaml
    type: sqs
    from: orders
    queue: orders.fifo
    region: eu-central-1
    group: "{customer}"
    deduplication_id: "{id}"
    ```
    """

    acknowledges = "the queue has taken each message"
    capabilities = frozenset({Capability.BYTES})
    most_rows = MOST
    extra = "aws"
    clients = ("boto3",)

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        config = self.config
        texts = [
            (("group",), config.group),
            (("deduplication_id",), config.deduplication_id),
            *((("attributes", name), text) for name, text in config.attributes.items()),
        ]
        raise_all(
            each for option, text in texts if text for each in text.mistakes(columns, *option)
        )

    def check(self) -> None:
        queue = self.open()
        queue.reached()
        queue.close()

    def open(self) -> Queue:
        return Queue(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return SqsWriter(client, self.config)
