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
    """What both contracts need."""

    wrong_secret = {"secret_key": "wrong"}
    never = {"test_a_value_of_a_megabyte": TOO_LARGE}
    fifo = False
    more: dict[str, Any] = {}

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
    # moto may give a message to two requests that ask at once
    more = {"wait": "1s", "visibility_timeout": "3s", "connections": 1}

    @pytest.fixture
    def server(self, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Between two requests there is no connection that could be lost: it is shut for longer

        than a request takes.
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
    never = {**OnSqs.never, "test_a_slow_server_does_not_fill_the_memory": TOO_LARGE}

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
            return self.decoded(found, schema)

        return rows


class TestSqsSinkFifo(TestSqsSink):
    fifo = True
    bad_row = {"id": None, "name": "without a group"}
    more = {"group": "{id}"}
