from __future__ import annotations

import uuid
from typing import Any

import pytest

from penstock.connectors.aws.kinesis import KinesisSink, KinesisSource
from penstock.testing.contract import SinkContract, SourceContract
from servers.aws import REGION, Aws

TOO_LARGE = "the server takes records of at most 1 MiB"


class OnKinesis:
    """What both contracts need."""

    wrong_secret = {"secret_key": "wrong"}
    more: dict[str, Any] = {}

    @pytest.fixture
    def server(self, aws: Aws) -> Any:
        return aws.gate

    @pytest.fixture
    def client(self, aws: Aws) -> Any:
        return aws.connect("kinesis")

    @pytest.fixture
    def stream(self, client: Any) -> str:
        name = f"made-up-{uuid.uuid4().hex[:12]}"
        client.create_stream(StreamName=name, ShardCount=1)
        client.get_waiter("stream_exists").wait(StreamName=name)
        return name

    @pytest.fixture
    def options(self, aws: Aws, stream: str) -> dict[str, Any]:
        access = {**aws.access, "region": REGION, "timeout": "3s"}
        return {**access, "stream": stream, **self.more}


class TestKinesisSource(OnKinesis, SourceContract):
    component = KinesisSource
    limited = {"max_records": 1}

    @pytest.fixture
    def put(self, client: Any, stream: str) -> Any:
        def put(rows: Any, schema: Any) -> None:
            for payload in self.encoded(rows, schema):
                client.put_record(StreamName=stream, Data=payload, PartitionKey="made-up")

        return put


class TestKinesisSink(OnKinesis, SinkContract):
    component = KinesisSink
    never = {
        "test_a_value_of_a_megabyte": TOO_LARGE,
        "test_a_slow_server_does_not_fill_the_memory": TOO_LARGE,
    }
    more = {"partition_key": "{id}"}
    bad_row = {"id": None, "name": "without a key"}

    @pytest.fixture
    def options(self, aws: Aws, stream: str, request: pytest.FixtureRequest) -> dict[str, Any]:
        access = {**aws.access, "region": REGION, "timeout": "3s", "stream": stream}
        odd = request.node.originalname == "test_odd_names_of_columns"
        return access if odd else {**access, **self.more}

    @pytest.fixture
    def rows(self, client: Any, stream: str) -> Any:
        def rows(schema: Any) -> Any:
            (shard,) = client.list_shards(StreamName=stream)["Shards"]
            at = client.get_shard_iterator(
                StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            found: list[bytes] = []
            while some := (answer := client.get_records(ShardIterator=at))["Records"]:
                found += [each["Data"] for each in some]
                at = answer["NextShardIterator"]
            return self.decoded(found, schema)

        return rows
