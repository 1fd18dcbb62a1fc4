from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.aws.sqs import SqsSink, SqsSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.aws import REGION, Aws

TOO_LARGE = "SQS takes messages of at most 1 MiB"


class OnSqs:
    """Fixtures of both contracts."""

    wrong_credentials = {"auth": {"secret_key": "wrong"}}
    payload_kind = "lines"
    max_payload_size = 1_000_000
    fifo = False
    more: dict[str, Any] = {}

    @pytest.fixture(autouse=True)
    def _wrong_credentials(self, aws: Aws) -> None:
        self.wrong_credentials = {"auth": {**aws.access["auth"], "secret_key": "wrong"}}

    @pytest.fixture
    def server(self, aws: Aws) -> Any:
        return aws.gate

    @pytest.fixture
    def client(self, aws: Aws) -> Any:
        return aws.connect("sqs")

    @pytest.fixture
    def name(self) -> str:
        return f"made-up-{uuid.uuid4().hex[:12]}{'.fifo' * self.fifo}"

    @pytest.fixture
    def url(self, client: Any, name: str) -> str:
        fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"} if self.fifo else {}
        return str(client.create_queue(QueueName=name, Attributes=fifo)["QueueUrl"])

    @pytest.fixture
    def options(self, aws: Aws, name: str, url: str) -> dict[str, Any]:
        return {**aws.access, "region": REGION, "queue": name, "timeout": "3s", **self.more}


class TestSqsSource(OnSqs, ReceivingContract):
    component = SqsSource
    variant = "queue: orders"
    # moto may deliver a message to two concurrent requests
    more = {"wait": "1s", "visibility_timeout": "3s", "concurrency": 1}

    @pytest.fixture
    def server(self, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Returns a gate whose `kill` closes it for longer than a request.

        No connection is open between two requests.
        """

        def kill() -> None:
            aws.gate.stop()
            time.sleep(2)

        monkeypatch.setattr(aws.gate, "kill", kill)
        return aws.gate

    @pytest.fixture
    def send(self, client: Any, url: str) -> Callable[[list[bytes]], None]:
        def send(payloads: list[bytes]) -> None:
            for each in payloads:
                group = {"MessageGroupId": "g", "MessageDeduplicationId": uuid.uuid4().hex}
                client.send_message(
                    QueueUrl=url, MessageBody=each.decode(), **(group if self.fifo else {})
                )

        return send


class TestSqsSourceFifo(TestSqsSource):
    variant = "queue: orders.fifo"
    fifo = True


class TestSqsSink(OnSqs, SinkContract):
    component = SqsSink
    unsupported = {"test_back_pressure_bounds_memory": TOO_LARGE}

    @pytest.fixture
    def rows(self, client: Any, url: str) -> Any:
        def rows(schema: Any) -> Any:
            found: list[bytes] = []
            while some := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get(
                "Messages"
            ):
                for each in some:
                    found.append(each["Body"].encode())
                    client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            return self.decode(found, schema)

        return rows


class TestSqsSinkFifo(TestSqsSink):
    fifo = True
    bad_row = {"id": None, "name": "without a group"}
    more = {"message_group": "{id}"}
