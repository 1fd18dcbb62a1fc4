"""A stream, and what is asked of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from penstock.connectors.aws.access import AccessConfig
from penstock.connectors.aws.faults import faults
from penstock.connectors.aws.kinesis.position import SINCE, START
from penstock.sdk import Transient

MOST = 10_000
"""The most records of one answer."""
PAUSE, PATIENCE = 0.25, 30.0
"""How long to wait when a shard is read too often, each time and in all."""


class StreamConfig(AccessConfig):
    stream: str = Field(min_length=1)
    """The stream: its name, or its ARN."""

    @property
    def named(self) -> dict[str, str]:
        return {"StreamARN" if self.stream.startswith("arn:") else "StreamName": self.stream}


class Shard(NamedTuple):
    """A shard, those that it came from and that are still there, and whether it takes no more."""

    id: str
    parents: frozenset[str]
    closed: bool


Records = Sequence[Mapping[str, Any]]


class Stream:
    """One stream, by a client that may be used by several threads. Raises Transient, Permanent."""

    def __init__(self, config: StreamConfig) -> None:
        self._config = config
        self._client = config.client("kinesis", connections=50)

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        """What the service answers to an operation on the stream."""
        return self._asked(operation, **self._config.named, **given)

    def shards(self) -> list[Shard]:
        """All shards whose records are kept."""
        answer = self.call("list_shards")
        found = list(answer["Shards"])
        while token := answer.get("NextToken"):
            answer = self._asked("list_shards", NextToken=token)
            found += answer["Shards"]
        known = {each["ShardId"] for each in found}
        return [
            Shard(
                each["ShardId"],
                frozenset(known & {each.get("ParentShardId"), each.get("AdjacentParentShardId")}),
                "EndingSequenceNumber" in each["SequenceNumberRange"],
            )
            for each in found
        ]

    def pages(self, shard: str, place: str, most: int = MOST) -> Iterator[Records]:
        """The records after a place of a shard, until there are no more now; `most` in a page."""
        until: str | None = self.call("get_shard_iterator", ShardId=shard, **_from(place))[
            "ShardIterator"
        ]
        while until is not None:
            answer = self._patiently("get_records", ShardIterator=until, Limit=min(most, MOST))
            until = answer.get("NextShardIterator")
            if answer["Records"]:
                yield answer["Records"]
            elif not answer["MillisBehindLatest"]:
                return

    def close(self) -> None:
        """Lets go of its connections."""
        self._client.close()

    def _patiently(self, operation: str, **given: Any) -> dict[str, Any]:
        """The same; a shard that is read too often is asked again."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self._asked(operation, **given)
            except Transient as error:
                if error.code != "busy" or time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def _asked(self, operation: str, **given: Any) -> dict[str, Any]:
        with faults("kinesis"):
            answer: dict[str, Any] = getattr(self._client, operation)(**given)
        return answer


def _from(place: str) -> dict[str, Any]:
    if place == START:
        return {"ShardIteratorType": "TRIM_HORIZON"}
    if place.startswith(SINCE):
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": float(place.removeprefix(SINCE))}
    return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": place}
