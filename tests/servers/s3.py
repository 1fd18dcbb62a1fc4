"""An S3 server (moto) that checks signatures, and the way to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from servers.aws import REGION, Aws


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
