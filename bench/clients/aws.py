"""SQS and Kinesis (moto's) with boto3."""

from __future__ import annotations

import uuid
from typing import Any

from clients.system import Ready, System
from penstock.connectors.aws.kinesis import KinesisSink, KinesisSource
from penstock.connectors.aws.sqs import SqsSink, SqsSource
from servers.aws import REGION, Aws

MOST_OF_SQS, MOST_OF_KINESIS = 10, 500


class _OnAws(System):
    service: str

    @classmethod
    def server(cls) -> Any:
        return Aws()

    def __init__(self, server: Any) -> None:
        self._access = {**server.access, "region": REGION}
        self._name = f"made-up-{uuid.uuid4().hex[:12]}"

    def _client(self) -> Any:
        import boto3

        return boto3.client(
            self.service, region_name=REGION, endpoint_url=self._access["endpoint_url"],
            aws_access_key_id=self._access["auth"]["access_key"],
            aws_secret_access_key=self._access["auth"]["secret_key"],
        )  # fmt: skip


class Sqs(_OnAws):
    name, source, sink = "sqs", SqsSource, SqsSink
    service = "sqs"
    messages = 200

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self._url = self._client().create_queue(QueueName=self._name)["QueueUrl"]

    def options(self) -> dict[str, Any]:
        return {**self._access, "queue": self._name}

    def send(self, payloads: list[bytes]) -> None:
        client = self._client()
        for at in range(0, len(payloads), MOST_OF_SQS):
            some = payloads[at : at + MOST_OF_SQS]
            entries = [{"Id": str(n), "MessageBody": p.decode()} for n, p in enumerate(some)]
            client.send_message_batch(QueueUrl=self._url, Entries=entries)

    def take(self, count: int, ready: Ready) -> int:
        client = self._client()
        ready()
        taken = 0
        while taken < count:
            found = client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=MOST_OF_SQS, WaitTimeSeconds=1
            ).get("Messages", [])
            entries = [
                {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(found)
            ]
            if entries:
                client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            taken += len(found)
        return taken


class Kinesis(_OnAws):
    name, source, sink = "kinesis", KinesisSource, KinesisSink
    service = "kinesis"
    messages = 10_000

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        client = self._client()
        client.create_stream(StreamName=self._name, ShardCount=1)
        client.get_waiter("stream_exists").wait(StreamName=self._name)

    def options(self) -> dict[str, Any]:
        return {**self._access, "stream": self._name}

    def send(self, payloads: list[bytes]) -> None:
        client = self._client()
        for at in range(0, len(payloads), MOST_OF_KINESIS):
            records = [
                {"Data": payload, "PartitionKey": str(number)}
                for number, payload in enumerate(payloads[at : at + MOST_OF_KINESIS])
            ]
            client.put_records(StreamName=self._name, Records=records)

    def take(self, count: int, ready: Ready) -> int:
        client = self._client()
        (shard,) = client.list_shards(StreamName=self._name)["Shards"]
        at = client.get_shard_iterator(
            StreamName=self._name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        ready()
        taken = 0
        while taken < count:
            answer = client.get_records(ShardIterator=at)
            taken, at = taken + len(answer["Records"]), answer["NextShardIterator"]
        return taken
