"""SQS source."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from penstock.connectors.aws.sqs.config import SqsSourceConfig
from penstock.connectors.aws.sqs.reader import METADATA, poll, run_in_thread
from penstock.sdk import Capability, Context, Journal, ReceivingSource
from penstock.sdk.aws.queue import Queue


class SqsSource(ReceivingSource[SqsSourceConfig]):
    """Receives the messages of a queue of Amazon SQS by long polling.

    A message is deleted from the queue after it was written to the journal. Messages of a message
    group of a FIFO queue keep their order.

    ```yaml
    type: sqs
    queue: orders
    region: eu-central-1
    metadata: [sent]
    ```
    """

    parallelism = "a request of `concurrency`"
    acknowledges = "deleted from the queue once the message is on disk"
    variants = ("queue: orders", "queue: orders.fifo")
    capabilities = ReceivingSource.capabilities - {Capability.ORDERED}
    optional_capabilities = {Capability.ORDERED: "queue: NAME.fifo"}
    extra = "aws"
    client_modules = ("boto3",)

    def __init__(self, config: SqsSourceConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.fifo:
            self.capabilities = self.capabilities | self.optional_capabilities.keys()

    def message_metadata_schema(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        queue = Queue(self.config)
        queue.check()
        queue.close()

    async def receive(self, journal: Journal) -> None:
        config = self.config
        queue = await run_in_thread(
            lambda: Queue(config, wait=config.wait, connections=2 * config.concurrency)
        )
        await run_in_thread(queue.check)
        journal.ready.set()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(config.concurrency):
                    group.create_task(poll(queue, config, journal))
        except* Exception as exception_group:
            raise exception_group.exceptions[0] from None
