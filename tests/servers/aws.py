"""Amazon's services by moto, which checks signatures, and the way to them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.request import Request, urlopen

import pytest

from servers.gate import Gate
from servers.server import Server

REGION = "eu-central-1"
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}


class Aws(Server):
    """The server at `url`; `gate` is the way that the code under test takes. It keeps nothing."""

    name = "aws"
    title = "Amazon's services by moto 5"

    def start(self) -> None:
        """Starts it, with one user who may do everything."""
        super().start()
        self.access_key, self.secret_key = "none-yet", "none-yet"
        iam = self.connect("iam")
        iam.create_user(UserName="tests")
        key = iam.create_access_key(UserName="tests")["AccessKey"]
        self.access_key, self.secret_key = key["AccessKeyId"], key["SecretAccessKey"]
        iam.put_user_policy(UserName="tests", PolicyName="all", PolicyDocument=json.dumps(_POLICY))
        self._call("reset-auth", b"0")
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
    def access(self) -> dict[str, Any]:
        """The options that reach it through the gate."""
        return {
            "endpoint_url": f"http://127.0.0.1:{self.gate.port}",
            "auth": {"access_key": self.access_key, "secret_key": self.secret_key},
        }

    def connect(self, service: str) -> Any:
        """A client past the gate."""
        import boto3

        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION,
            aws_access_key_id=self.access_key, aws_secret_access_key=self.secret_key,
        )  # fmt: skip

    def _call(self, name: str, data: bytes | None = None) -> bytes:
        request = Request(f"{self.url}/moto-api/{name}", data, {"Content-Type": "text/plain"})
        with urlopen(request, timeout=30) as answer:
            return bytes(answer.read())


@pytest.fixture(scope="session")
def aws() -> Iterator[Aws]:
    """One server for all tests that ask for it."""
    with Aws() as server:
        yield server
        server.gate.stop()
