"""The sink of Kinesis streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.aws.kinesis.stream import Stream, StreamConfig
from penstock.connectors.aws.kinesis.writing import MOST, KinesisWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Duration, Sink, Writer
from penstock.sdk.kit.template import Template


class KinesisSinkConfig(StreamConfig):
    partition_key: Template | None = None
    """What chooses a record's shard, within which records keep their order; `{column}` in it is
    replaced by the row's value. By default records are spread over all shards."""
    retry: Duration = Field(default=30.0, ge=0)
    """How long records are sent again that the stream could not take."""


class KinesisSink(Sink[KinesisSinkConfig]):
    """Puts rows into a stream of Amazon Kinesis, up to 500 at a time.

    What a shard could not take, as when it gets too much, is sent again, and may then come after
    later records; what the stream refuses by itself becomes a dead letter.

    ```yaml
    type: kinesis
    from: clicks
    stream: clicks
    region: eu-central-1
    partition_key: "{user}"
    ```
    """

    acknowledges = "the stream has taken each record"
    capabilities = frozenset({Capability.BYTES})
    most_rows = MOST
    extra = "aws"
    clients = ("boto3",)

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        if self.config.partition_key is not None:
            raise_all(self.config.partition_key.mistakes(columns, "partition_key"))

    def check(self) -> None:
        stream = self.open()
        stream.shards()
        stream.close()

    def open(self) -> Stream:
        return Stream(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return KinesisWriter(client, self.config)
