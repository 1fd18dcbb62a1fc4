"""The source of SQS queues."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.aws.sqs.aside import aside
from penstock.connectors.aws.sqs.queue import Queue, QueueConfig
from penstock.sdk import (
    Capability,
    Context,
    Duration,
    Journal,
    Message,
    ReceivingConfig,
    ReceivingSource,
)

MOST = 10
"""How many messages are received or deleted at once; the service takes no more."""


class SqsSourceConfig(QueueConfig, ReceivingConfig):
    wait: Duration = Field(default=20.0, ge=0, le=20)
    """How long the service waits for messages before it answers that there are none."""
    visibility_timeout: Duration = Field(default=60.0, ge=1, le=43_200)
    """How long a message that we took is hidden from others; then it comes again. It is prolonged
    while the journal is full."""
    connections: int = Field(default=4, ge=1, le=100)
    """How many requests for messages there are at once."""


class SqsSource(ReceivingSource[SqsSourceConfig]):
    """Receives the messages of a queue of Amazon SQS, by long polling.

    A message is deleted from the queue once it is on disk. The messages of a group of a FIFO queue
    are read in their order.

    ```yaml
    type: sqs
    queue: orders
    region: eu-central-1
    metadata: [sent]
    ```
    """

    parallelism = "a connection of `connections`"
    acknowledges = "deleted from the queue once the message is on disk"
    variants = ("queue: orders", "queue: orders.fifo")
    capabilities = ReceivingSource.capabilities - {Capability.ORDERED}
    by_option = {Capability.ORDERED: "queue: NAME.fifo"}
    extra = "aws"
    clients = ("boto3",)

    def __init__(self, config: SqsSourceConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.fifo:
            self.capabilities = self.capabilities | self.by_option.keys()

    def about(self) -> pa.Schema:
        return pa.schema(
            [
                ("message_id", pa.string()),
                ("sent", pa.timestamp("ms", tz="UTC")),
                ("receive_count", pa.int32()),
                ("group", pa.string()),
                ("deduplication_id", pa.string()),
                ("sequence", pa.string()),
                ("attributes", pa.map_(pa.string(), pa.string())),
                ("binary_attributes", pa.map_(pa.string(), pa.binary())),
            ]
        )

    def check(self) -> None:
        queue = Queue(self.config)
        queue.reached()
        queue.close()

    async def receive(self, journal: Journal) -> None:
        config = self.config
        queue = await aside(
            lambda: Queue(config, wait=config.wait, connections=2 * config.connections)
        )
        await aside(queue.reached)
        journal.ready.set()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(config.connections):
                    group.create_task(self._poll(queue, journal))
        except* Exception as raised:
            raise raised.exceptions[0] from None

    async def _poll(self, queue: Queue, journal: Journal) -> None:
        """Receives, keeps and deletes, for ever."""
        while True:
            answer = await aside(
                lambda: queue.call(
                    "receive_message",
                    MaxNumberOfMessages=MOST,
                    WaitTimeSeconds=round(self.config.wait),
                    VisibilityTimeout=round(self.config.visibility_timeout),
                    MessageSystemAttributeNames=["All"],
                    MessageAttributeNames=["All"],
                )
            )
            if found := answer.get("Messages"):
                await self._keep(queue, journal, found)
                await aside(lambda: queue.call("delete_message_batch", Entries=_handles(found)))

    async def _keep(self, queue: Queue, journal: Journal, found: Sequence[dict[str, Any]]) -> None:
        """Returns when they are on disk; they stay hidden until then."""
        seconds = round(self.config.visibility_timeout)
        keeping = asyncio.ensure_future(journal.append([_message(each) for each in found]))
        entries = [{**each, "VisibilityTimeout": seconds} for each in _handles(found)]
        try:
            while not (await asyncio.wait([keeping], timeout=seconds / 2))[0]:
                await aside(lambda: queue.call("change_message_visibility_batch", Entries=entries))
        finally:
            keeping.cancel()
        await keeping


def _handles(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"Id": str(at), "ReceiptHandle": m["ReceiptHandle"]} for at, m in enumerate(found)]


def _message(found: Mapping[str, Any]) -> Message:
    system = found.get("Attributes", {})
    given = found.get("MessageAttributes", {})
    return Message(
        found["Body"].encode(),
        {
            "message_id": found["MessageId"],
            "sent": datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
            "receive_count": int(system["ApproximateReceiveCount"]),
            "group": system.get("MessageGroupId"),
            "deduplication_id": system.get("MessageDeduplicationId"),
            "sequence": system.get("SequenceNumber"),
            "attributes": _of(given, "StringValue"),
            "binary_attributes": _of(given, "BinaryValue"),
        },
    )


def _of(given: Mapping[str, Any], kind: str) -> list[tuple[str, Any]]:
    return [(name, value[kind]) for name, value in given.items() if kind in value]
