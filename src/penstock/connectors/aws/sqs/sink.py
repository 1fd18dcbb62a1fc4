"""SQS sink."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.aws.sqs.config import SqsSinkConfig
from penstock.connectors.aws.sqs.writer import SqsWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.aws.queue import MAX_MESSAGES, Queue
from penstock.sdk.columns.template import check_templates


class SqsSink(Sink[SqsSinkConfig]):
    """Sends messages to a queue of Amazon SQS in batches of ten.

    Messages that the service could not accept are sent again. A message that the service rejects,
    such as one that is too large, becomes a dead letter. A FIFO queue with `deduplication_id`
    drops duplicates within five minutes.

    ```yaml
    type: sqs
    from: orders
    queue: orders.fifo
    region: eu-central-1
    message_group: "{customer}"
    deduplication_id: "{id}"
    ```
    """

    acknowledges = "the queue has accepted each message"
    capabilities = frozenset({Capability.BYTES})
    max_rows_per_write = MAX_MESSAGES
    extra = "aws"
    client_modules = ("boto3",)

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        raise_all(check_templates(self.config.templates(), columns))

    def check(self) -> None:
        queue = self.open()
        queue.check()
        queue.close()

    def open(self) -> Queue:
        return Queue(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return SqsWriter(client, self.config)
