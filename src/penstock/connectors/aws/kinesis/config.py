"""Options of the Kinesis source and sink."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.sdk import Retry, StartAt
from penstock.sdk.aws.config import AwsConfig
from penstock.sdk.columns.template import KeyTemplate


class StreamConfig(AwsConfig):
    stream: str = Field(min_length=1)
    """The stream: its name or its ARN."""
    retry: Retry = Retry.model_validate({"attempts": 12, "backoff": "100ms", "max_backoff": "5s"})
    """Retry of throttled requests and of records that the stream could not accept."""

    @property
    def stream_parameter(self) -> dict[str, str]:
        """The parameter that names the stream in requests."""
        return {"StreamARN" if self.stream.startswith("arn:") else "StreamName": self.stream}


class KinesisStartAt(StartAt):
    """A start position in a Kinesis stream."""

    offset: dict[str, str] | None = None
    """The sequence number of the first record of each shard: `{shardId-000000000000: "4959"}`.
    Other shards start at the earliest record."""


class KinesisSourceConfig(StreamConfig):
    start: Literal["earliest", "latest"] | KinesisStartAt = "earliest"
    """The start position of the first run: `earliest` (Kinesis: TRIM_HORIZON), `latest`,
    `{timestamp: TIME}`, or `{offset: {SHARD: SEQUENCE_NUMBER}}`. Later runs resume."""
    max_records: int | None = Field(default=None, ge=1)
    """The largest number of records of a batch."""


class KinesisSinkConfig(StreamConfig):
    key: KeyTemplate | None = None
    """The partition key, a template: `"{user}"`. It selects the shard, within which records keep
    their order. By default records are spread over all shards."""
