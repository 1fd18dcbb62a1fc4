from __future__ import annotations

import uuid
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from interruptions import check_cut_responses
from penstock.connectors.aws.kinesis import KinesisSink, KinesisSource
from penstock.sdk.aws.client import AwsClient
from penstock.sdk.aws.config import AwsConfig
from penstock.testing.contract import SinkContract, SourceContract
from servers.aws import REGION, Aws

TOO_LARGE = "the server takes records of at most 1 MiB"


class OnKinesis:
    """Fixtures of both contracts."""

    wrong_credentials: dict[str, Any] = {"auth": {}}
    more: dict[str, Any] = {}

    @pytest.fixture(autouse=True)
    def _wrong_credentials(self, aws: Aws) -> None:
        self.wrong_credentials = {"auth": {**aws.access["auth"], "secret_key": "wrong"}}

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
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def put(self, client: Any, stream: str) -> Any:
        def put(rows: Any, schema: Any) -> None:
            for payload in self.encode(rows, schema):
                client.put_record(StreamName=stream, Data=payload, PartitionKey="made-up")

        return put


class TestKinesisSink(OnKinesis, SinkContract):
    component = KinesisSink
    unsupported = {"test_back_pressure_bounds_memory": TOO_LARGE}
    max_payload_size = 1_000_000
    more = {"key": "{id}"}
    bad_row = {"id": None, "name": "without a key"}

    @pytest.fixture
    def options(self, aws: Aws, stream: str, request: pytest.FixtureRequest) -> dict[str, Any]:
        access = {**aws.access, "region": REGION, "timeout": "3s", "stream": stream}
        odd = request.node.originalname == "test_special_column_names"
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
            return self.decode(found, schema)

        return rows


@pytest.mark.server
def test_responses_that_are_cut(aws: Aws) -> None:
    """The client takes such a response for one without shards."""
    stream = f"test-{uuid.uuid4().hex[:12]}"
    aws.connect("kinesis").create_stream(StreamName=stream, ShardCount=1)
    config = AwsConfig.model_validate({**aws.access, "region": REGION})
    with closing(AwsClient(config, "kinesis")) as client:
        call = partial(client.call, "describe_stream_summary", StreamName=stream)

        def count() -> Any:
            return call().get("StreamDescriptionSummary", {}).get("OpenShardCount")

        assert check_cut_responses(aws.gate, count) == 1
