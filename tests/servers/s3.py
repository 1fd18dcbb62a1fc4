"""An S3 server (moto) that checks signatures, and the way to it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

import pytest

from servers.aws import REGION, Aws

EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]


class S3(Aws):
    """The server, with buckets."""

    name = "s3"

    def start(self) -> None:
        """Starts it, with one user who may do everything."""
        super().start()
        self.client = self.connect("s3")

    @property
    def storage(self) -> dict[str, Any]:
        """The option `storage` that reaches it."""
        return {
            "endpoint_url": f"http://127.0.0.1:{self.gate.port}",
            "auth": {"access_key": self.access_key, "secret_key": self.secret_key},
        }

    @property
    def secret(self) -> str:
        """A text that no message may have."""
        return self.secret_key

    def new_bucket(self) -> Bucket:
        """An empty bucket."""
        name = f"test-{uuid.uuid4().hex[:12]}"
        self.client.create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        return Bucket(self, name)


class Bucket:
    """A bucket, by another client than Penstock's."""

    def __init__(self, server: S3, name: str) -> None:
        self.server = server
        self.name = name
        self.url = f"s3://{name}"

    def put(self, key: str, content: bytes) -> None:
        """Writes an object."""
        self.server.client.put_object(Bucket=self.name, Key=key, Body=content)

    def get(self, key: str) -> bytes:
        """The content of an object."""
        return bytes(self.server.client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def names(self, prefix: str = "") -> list[str]:
        """The names of all objects but directories' and hidden ones, in order."""
        pages = self.server.client.get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.name, Prefix=prefix)
        keys = [each["Key"] for page in found for each in page.get("Contents", ())]
        return sorted(k for k in keys if not k.endswith("/") and "/." not in f"/{k}")


class Notified:
    """A queue that a bucket notifies."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket, self.sqs = bucket, bucket.server.connect("sqs")
        self.url = self.sqs.create_queue(QueueName=bucket.name)["QueueUrl"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        self.arn = attributes["Attributes"]["QueueArn"]

    def notify(self, **configuration: Any) -> None:
        """Sends the events of the bucket to the queue, or to another destination."""
        default = {"QueueConfigurations": [{"QueueArn": self.arn, "Events": EVENTS}]}
        self.bucket.server.client.put_bucket_notification_configuration(
            Bucket=self.bucket.name, NotificationConfiguration=configuration or default
        )

    def send(self, key: str, **record: Any) -> None:
        """Sends the event of an object."""
        s3 = {"bucket": {"name": self.bucket.name}, "object": {"key": quote_plus(key)}}
        self.send_body({"Records": [{"eventName": "ObjectCreated:Put", "s3": s3, **record}]})

    def send_body(self, body: Any) -> None:
        """Sends a message."""
        self.sqs.send_message(QueueUrl=self.url, MessageBody=json.dumps(body))

    @property
    def count(self) -> int:
        """The number of messages, also of those that are hidden."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(int(found["Attributes"][name]) for name in names)

    def options(self, **more: Any) -> dict[str, Any]:
        server = self.bucket.server
        return {
            "path": f"{self.bucket.url}/in", "watch": True, "storage": server.storage,
            "notifications": {
                "queue": self.url, "region": REGION, "interval": "1ms", "listing": "never",
                **server.access, **more,
            },
        }  # fmt: skip


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """One server for all tests that ask for it."""
    with S3() as server:
        yield server
        server.gate.stop()


@pytest.fixture
def bucket(s3: S3) -> Bucket:
    """A bucket of the test's own."""
    return s3.new_bucket()


@pytest.fixture
def queue(bucket: Bucket) -> Notified:
    """A queue for the events of the bucket."""
    return Notified(bucket)
