"""Kinesis sink."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.aws.kinesis.client import Stream
from penstock.connectors.aws.kinesis.config import KinesisSinkConfig
from penstock.connectors.aws.writer import BatchWriter, Outcome, Retryable
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Rejected, Sink, Writer

MAX_RECORDS = 500
MAX_KEY_LENGTH = 256


class KinesisSink(Sink[KinesisSinkConfig]):
    """Writes records to a stream of Amazon Kinesis with PutRecords.

    Throttled records are sent again, possibly after later records. A record that the stream
    rejects becomes a dead letter.

    ```yaml
    type: kinesis
    from: clicks
    stream: clicks
    region: eu-central-1
    key: "{user}"
    ```
    """

    acknowledges = "the stream has accepted each record"
    capabilities = frozenset({Capability.BYTES})
    max_rows_per_write = MAX_RECORDS
    extra = "aws"
    client_modules = ("boto3",)

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        if self.config.key is not None:
            raise_all(self.config.key.check(columns, "key"))

    def check(self) -> None:
        stream = self.open()
        stream.shards()
        stream.close()

    def open(self) -> Stream:
        return Stream(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return KinesisWriter(client, self.config)


Entry = dict[str, Any]


class KinesisWriter(BatchWriter[Entry]):
    """Writes records with PutRecords."""

    max_records, max_size = MAX_RECORDS, 5 << 20
    service = "Kinesis"

    def __init__(self, stream: Stream, config: KinesisSinkConfig) -> None:
        super().__init__(config.retry)
        self._stream, self._config = stream, config

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[Entry | Rejected]:
        for payload, key in zip(payloads.to_pylist(), self._keys(rows), strict=True):
            if not key or len(key) > MAX_KEY_LENGTH:
                reason = f"expected a partition key of 1 to {MAX_KEY_LENGTH} characters"
                yield Rejected(reason, code="invalid-key")
            else:
                yield {"Data": payload or b"", "PartitionKey": key}

    def size(self, entry: Entry) -> int:
        return len(entry["Data"]) + len(entry["PartitionKey"].encode())

    def put(self, entries: Sequence[Entry]) -> list[Outcome]:
        records = self._stream.call("put_records", Records=entries)["Records"]
        return [
            Retryable(str(record.get("ErrorMessage"))) if record.get("ErrorCode") else None
            for record in records
        ]

    def _keys(self, rows: pa.RecordBatch) -> Sequence[str | None]:
        if self._config.key is None:
            return [uuid.uuid4().hex for _ in range(rows.num_rows)]
        return self._config.key.render(rows)
