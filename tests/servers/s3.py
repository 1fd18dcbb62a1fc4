"""An S3 server (moto) that checks signatures, and the way to it."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.request import Request, urlopen

import pytest

from servers.gate import Gate
from servers.server import Server

REGION = "eu-central-1"
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}


class S3(Server):
    """The server at `url`; `gate` is the way that the code under test takes. It keeps nothing."""

    name = "s3"

    def start(self) -> None:
        """Starts it, with one user who may do everything."""
        super().start()
        self.access_key, self.secret_key = "none-yet", "none-yet"
        iam = self._client("iam")
        iam.create_user(UserName="tests")
        key = iam.create_access_key(UserName="tests")["AccessKey"]
        self.access_key, self.secret_key = key["AccessKeyId"], key["SecretAccessKey"]
        iam.put_user_policy(UserName="tests", PolicyName="all", PolicyDocument=json.dumps(_POLICY))
        self._call("reset-auth", b"0")
        self.client = self._client("s3")
        self.gate = Gate(self.port)

    def command(self) -> Sequence[str]:
        """moto's server."""
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def ready(self) -> None:
        """Asks for what it holds."""
        self._call("data.json")

    @property
    def url(self) -> str:
        """Where it answers, past the gate."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage(self) -> dict[str, Any]:
        """The option `storage` that reaches it."""
        return {
            "endpoint": f"http://127.0.0.1:{self.gate.port}",
            "access_key": self.access_key,
            "secret_key": self.secret_key,
        }

    def new_bucket(self) -> Bucket:
        """An empty bucket."""
        name = f"test-{uuid.uuid4().hex[:12]}"
        self.client.create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        return Bucket(self, name)

    def _call(self, name: str, data: bytes | None = None) -> bytes:
        request = Request(f"{self.url}/moto-api/{name}", data, {"Content-Type": "text/plain"})
        with urlopen(request, timeout=5) as answer:
            return bytes(answer.read())

    def _client(self, service: str) -> Any:
        import boto3

        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION,
            aws_access_key_id=self.access_key, aws_secret_access_key=self.secret_key,
        )  # fmt: skip


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
