from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.nats import NatsSink, NatsSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from servers.nats import LARGEST, USER, Nats


class OnNats:
    """The server and credentials of all contracts."""

    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, nats: Nats) -> Nats:
        return nats


class TestNatsSubject(OnNats, ReceivingContract):
    component = NatsSource
    variant = "subject: orders.new"
    lossy_reason = "messages without a subscriber are not kept"

    @pytest.fixture
    def subject(self, nats: Nats) -> str:
        return f"{nats.new_name()}.a"

    @pytest.fixture
    def options(self, nats: Nats, subject: str) -> dict[str, Any]:
        return {**nats.login, "subject": subject}

    @pytest.fixture
    def send(self, nats: Nats, subject: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: nats.publish(subject, payloads)


class TestNatsStream(OnNats, SourceContract):
    component = NatsSource
    variant = "stream: ORDERS"
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def stream(self, nats: Nats) -> str:
        return nats.new_stream()

    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "stream": stream}

    @pytest.fixture
    def put(self, nats: Nats, stream: str) -> Any:
        return lambda rows, schema: nats.put(f"{stream}.a", self.encode(rows, schema))


class TestNatsStreamWithConsumer(TestNatsStream):
    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "stream": stream, "subject": f"{stream}.a", "consumer": "pipeline"}


class TestNatsQueueConsumer(OnNats, ReceivingContract):
    component = NatsSource
    variant = "stream: ORDERS, group: workers"

    @pytest.fixture
    def stream(self, nats: Nats) -> str:
        return nats.new_stream(retention="workqueue")

    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        """Returns options with a short `ack_wait`, after which messages are redelivered."""
        return {
            **nats.login,
            "stream": stream,
            "group": "workers",
            "consumer_settings": {"ack_wait": "5s"},
        }

    @pytest.fixture
    def send(self, nats: Nats, stream: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: nats.put(f"{stream}.a", payloads)


class TestNatsBucket(OnNats, SourceContract):
    component = NatsSource
    variant = "bucket: settings"
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def bucket(self, nats: Nats) -> str:
        return nats.new_bucket()

    @pytest.fixture
    def options(self, nats: Nats, bucket: str) -> dict[str, Any]:
        return {**nats.login, "bucket": bucket}

    @pytest.fixture
    def put(self, nats: Nats, bucket: str) -> Any:
        def put(rows: Any, schema: Any) -> None:
            for payload in self.encode(rows, schema):
                nats.put(f"$KV.{bucket}.{nats.new_name()}", [payload])

        return put


class TestNatsSink(OnNats, SinkContract):
    """Publishes to a subject of a stream, which shows the messages."""

    component = NatsSink
    variant = "subject: orders.new"
    bad_row = {"id": 3, "name": "x" * LARGEST}

    @pytest.fixture
    def stream(self, nats: Nats) -> str:
        return nats.new_stream()

    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "subject": f"{stream}.a"}

    @pytest.fixture
    def rows(self, nats: Nats, stream: str) -> Any:
        return lambda schema: self.decode([m.data or b"" for m in nats.messages(stream)], schema)


class TestNatsSinkStream(TestNatsSink):
    variant = "subject: orders.new, stream: ORDERS"

    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "subject": f"{stream}.a", "stream": stream}


class TestNatsSinkBucket(OnNats, SinkContract):
    component = NatsSink
    variant = "bucket: totals"
    bad_row = {"id": 3, "name": "x" * LARGEST}

    @pytest.fixture
    def bucket(self, nats: Nats) -> str:
        return nats.new_bucket(history=64)

    @pytest.fixture
    def options(self, nats: Nats, bucket: str) -> dict[str, Any]:
        return {**nats.login, "bucket": bucket, "key": "row.{id}"}

    @pytest.fixture
    def rows(self, nats: Nats, bucket: str) -> Any:
        def rows(schema: Any) -> Any:
            found = nats.messages(f"KV_{bucket}")
            return self.decode([m.data or b"" for m in found], schema)

        return rows

    @pytest.fixture
    def table(self, nats: Nats, bucket: str) -> Any:
        def table(schema: Any) -> Any:
            latest = {m.subject: m.data for m in nats.messages(f"KV_{bucket}")}
            return self.decode([data for data in latest.values() if data], schema)

        return table
