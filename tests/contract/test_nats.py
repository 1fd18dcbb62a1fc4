from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.nats import NatsSink, NatsSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from servers.nats import LARGEST, Nats


class OnNats:
    """What all of them need."""

    wrong_secret = {"password": "wrong"}

    @pytest.fixture
    def server(self, nats: Nats) -> Nats:
        return nats


class TestNatsSubject(OnNats, ReceivingContract):
    component = NatsSource
    variant = "subject: orders.new"
    forgets = "what is published while nobody listens is not kept"

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
    limited = {"max_records": 1}

    @pytest.fixture
    def stream(self, nats: Nats) -> str:
        return nats.new_stream()

    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "stream": stream}

    @pytest.fixture
    def put(self, nats: Nats, stream: str) -> Any:
        return lambda rows, schema: nats.put(f"{stream}.a", self.encoded(rows, schema))


class TestNatsStreamWithConsumer(TestNatsStream):
    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "stream": stream, "subject": f"{stream}.a", "consumer": "pipeline"}


class TestNatsWorkQueue(OnNats, ReceivingContract):
    component = NatsSource
    variant = "stream: ORDERS, queue_group: workers"

    @pytest.fixture
    def stream(self, nats: Nats) -> str:
        return nats.new_stream(retention="workqueue")

    @pytest.fixture
    def options(self, nats: Nats, stream: str) -> dict[str, Any]:
        return {**nats.login, "stream": stream, "queue_group": "workers"}

    @pytest.fixture
    def send(self, nats: Nats, stream: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: nats.put(f"{stream}.a", payloads)


class TestNatsBucket(OnNats, SourceContract):
    component = NatsSource
    variant = "bucket: settings"
    limited = {"max_records": 1}

    @pytest.fixture
    def bucket(self, nats: Nats) -> str:
        return nats.new_bucket()

    @pytest.fixture
    def options(self, nats: Nats, bucket: str) -> dict[str, Any]:
        return {**nats.login, "bucket": bucket}

    @pytest.fixture
    def put(self, nats: Nats, bucket: str) -> Any:
        def put(rows: Any, schema: Any) -> None:
            for payload in self.encoded(rows, schema):
                nats.put(f"$KV.{bucket}.{nats.new_name()}", [payload])

        return put


class TestNatsSink(OnNats, SinkContract):
    """Published to a subject; a stream that listens shows what arrived."""

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
        return lambda schema: self.decoded([m.data for m in nats.messages(stream)], schema)


class TestNatsSinkConfirmed(TestNatsSink):
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
        return lambda schema: self.decoded([m.data for m in nats.messages(f"KV_{bucket}")], schema)

    @pytest.fixture
    def table(self, nats: Nats, bucket: str) -> Any:
        def table(schema: Any) -> Any:
            latest = {m.subject: m.data for m in nats.messages(f"KV_{bucket}")}
            return self.decoded([*latest.values()], schema)

        return table
