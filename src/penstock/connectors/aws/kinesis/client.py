"""Client of one Kinesis stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.connectors.aws.kinesis.config import StreamConfig
from penstock.connectors.aws.kinesis.offsets import Shard, iterator_parameters
from penstock.sdk import Transient
from penstock.sdk.aws.client import AwsClient

MAX_PAGE = 10_000
"""The largest number of records of a response to GetRecords."""

Page = Sequence[Mapping[str, Any]]
"""The records of one response."""


class Stream:
    """One stream, usable by several threads. Raises Transient and Permanent."""

    def __init__(self, config: StreamConfig) -> None:
        self._config = config
        self._client = AwsClient(config, "kinesis", connections=50)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Returns the response to an operation on the stream."""
        return self._client.call(operation, **self._config.stream_parameter, **parameters)

    def shards(self) -> list[Shard]:
        """Returns all shards whose records are retained."""
        response = self.call("list_shards")
        shards = list(response["Shards"])
        while token := response.get("NextToken"):
            response = self._client.call("list_shards", NextToken=token)
            shards += response["Shards"]
        ids = {shard["ShardId"] for shard in shards}
        return [
            Shard(
                shard["ShardId"],
                frozenset(ids & {shard.get("ParentShardId"), shard.get("AdjacentParentShardId")}),
                "EndingSequenceNumber" in shard["SequenceNumberRange"],
            )
            for shard in shards
        ]

    def pages(self, shard: str, position: str, max_records: int = MAX_PAGE) -> Iterator[Page]:
        """Yields the records after a position until the end of the shard is reached."""
        parameters = iterator_parameters(position)
        response = self.call("get_shard_iterator", ShardId=shard, **parameters)
        iterator: str | None = response["ShardIterator"]
        while iterator is not None:
            response = self._get_records(iterator, min(max_records, MAX_PAGE))
            iterator = response.get("NextShardIterator")
            if response["Records"]:
                yield response["Records"]
            elif not response["MillisBehindLatest"]:
                return

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _get_records(self, iterator: str, limit: int) -> dict[str, Any]:
        """Calls GetRecords and retries throttled requests."""
        failures = 0
        while True:
            try:
                return self._client.call("get_records", ShardIterator=iterator, Limit=limit)
            except Transient as error:
                failures += 1
                if error.code != "busy" or failures >= self._config.retry.attempts:
                    raise
            time.sleep(self._config.retry.delay(failures))
