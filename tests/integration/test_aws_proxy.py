"""AWS sinks behind a proxy: partial failures of batch requests, and TLS."""

from __future__ import annotations

import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

from penstock.connectors.aws.kinesis import KinesisSink
from penstock.connectors.aws.kinesis.config import KinesisSinkConfig
from penstock.connectors.aws.sqs import SqsSink
from penstock.connectors.aws.sqs.config import SqsSinkConfig
from penstock.sdk import BatchId, Failure, Permanent, Transient
from servers.aws import REGION, Aws
from servers.certificates import Authority

COLUMNS = pa.schema([("id", pa.int64())])


class Between:
    """A proxy that reports the failure of one message, `times` times.

    With a certificate file it serves TLS.
    """

    def __init__(self, target: str, certificate: Path | None = None) -> None:
        self.times, self.sender_fault = 0, False
        between = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with urlopen(Request(target, body, dict(self.headers)), timeout=10) as answer:
                    said = between.altered(self.headers["X-Amz-Target"], answer.read())
                self.send_response(200)
                self.send_header("Content-Type", self.headers["Content-Type"])
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def altered(self, operation: str, said: bytes) -> bytes:
        if not self.times or not operation.endswith(("SendMessageBatch", "PutRecords")):
            return said
        self.times -= 1
        answer = json.loads(said)
        if "Records" in answer:
            answer["Records"][0] = {"ErrorCode": "InternalFailure", "ErrorMessage": "made up"}
        else:
            failed = answer["Successful"].pop(0)["Id"]
            fault = {"SenderFault": self.sender_fault, "Code": "MadeUp", "Message": "made up"}
            answer["Failed"] = [{"Id": failed, **fault}]
        return json.dumps(answer).encode()


@pytest.fixture
def between(aws: Aws) -> Iterator[Between]:
    between = Between(aws.url)
    yield between
    between.server.shutdown()
    between.server.server_close()


def written(sink: Any) -> list[Failure]:
    """Writes three rows."""
    rows = pa.RecordBatch.from_pylist([{"id": number} for number in range(3)], COLUMNS)
    with closing(sink.open()) as client:
        writer = sink.writer(client, BatchId("q", 0), 0, COLUMNS)
        return list(writer.write(rows, pa.array([b"0", b"1", b"2"])))


class TestSqs:
    @pytest.fixture
    def name(self, aws: Aws) -> str:
        name = f"made-up-{uuid.uuid4().hex[:12]}"
        aws.connect("sqs").create_queue(QueueName=name)
        return name

    def sink(self, aws: Aws, between: Between, name: str, **options: Any) -> SqsSink:
        given = {
            **aws.access,
            "endpoint_url": between.url,
            "region": REGION,
            "queue": name,
            **options,
        }
        return SqsSink(SqsSinkConfig.model_validate(given))

    def test_a_failed_entry_is_retried(self, aws: Aws, between: Between, name: str) -> None:
        between.times = 2
        assert written(self.sink(aws, between, name)) == []
        client = aws.connect("sqs")
        url = client.get_queue_url(QueueName=name)["QueueUrl"]
        found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        assert sorted(each["Body"] for each in found) == ["0", "0", "0", "1", "2"]

    def test_a_rejected_entry_is_a_bad_row(self, aws: Aws, between: Between, name: str) -> None:
        between.times, between.sender_fault = 1, True
        (failure,) = written(self.sink(aws, between, name))
        assert failure.index == 0 and "made up" in failure.error.message

    def test_retries_are_limited(self, aws: Aws, between: Between, name: str) -> None:
        between.times = 1000
        with pytest.raises(Transient, match="1 of the records"):
            written(self.sink(aws, between, name, retry={"attempts": 1}))


class TestKinesis:
    @pytest.fixture
    def name(self, aws: Aws) -> str:
        name = f"made-up-{uuid.uuid4().hex[:12]}"
        aws.connect("kinesis").create_stream(StreamName=name, ShardCount=1)
        return name

    def sink(self, aws: Aws, between: Between, name: str, **options: Any) -> KinesisSink:
        given = {
            **aws.access,
            "endpoint_url": between.url,
            "region": REGION,
            "stream": name,
            **options,
        }
        return KinesisSink(KinesisSinkConfig.model_validate(given))

    def test_a_failed_entry_is_retried(self, aws: Aws, between: Between, name: str) -> None:
        between.times = 2
        assert written(self.sink(aws, between, name)) == []
        client = aws.connect("kinesis")
        at = client.get_shard_iterator(
            StreamName=name, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found = client.get_records(ShardIterator=at)["Records"]
        assert [each["Data"] for each in found] == [b"0", b"1", b"2", b"0", b"0"]

    def test_retries_are_limited(self, aws: Aws, between: Between, name: str) -> None:
        between.times = 1000
        with pytest.raises(Transient, match="made up"):
            written(self.sink(aws, between, name, retry={"attempts": 1}))


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path)

    @pytest.fixture
    def secure(self, aws: Aws, authority: Authority) -> Iterator[Between]:
        between = Between(aws.url, authority.issue("proxy"))
        yield between
        between.server.shutdown()
        between.server.server_close()

    @pytest.fixture
    def sqs(self, aws: Aws, secure: Between) -> Any:
        name = f"made-up-{uuid.uuid4().hex[:12]}"
        aws.connect("sqs").create_queue(QueueName=name)
        access = {**aws.access, "endpoint_url": secure.url, "region": REGION, "queue": name}
        return lambda **options: SqsSink(SqsSinkConfig.model_validate({**access, **options}))

    @pytest.fixture
    def kinesis(self, aws: Aws, secure: Between) -> Any:
        name = f"made-up-{uuid.uuid4().hex[:12]}"
        aws.connect("kinesis").create_stream(StreamName=name, ShardCount=1)
        access = {**aws.access, "endpoint_url": secure.url, "region": REGION, "stream": name}
        return lambda **options: KinesisSink(
            KinesisSinkConfig.model_validate({**access, **options})
        )

    def test_a_custom_ca(self, sqs: Any, kinesis: Any, authority: Authority) -> None:
        for sink in (sqs, kinesis):
            sink(tls={"ca": str(authority.root)}).check()
            assert written(sink(tls={"ca": str(authority.root)})) == []

    def test_an_untrusted_certificate(self, sqs: Any, kinesis: Any, tmp_path: Path) -> None:
        other = Authority(tmp_path, "Other")
        for tls in (None, True, {"ca": str(other.root)}):
            for sink in (sqs, kinesis):
                with pytest.raises(Permanent, match="TLS verification") as caught:
                    sink(tls=tls).check()
                assert caught.value.code == "tls" and "tls.ca" in (caught.value.hint or "")

    def test_without_verification(self, sqs: Any) -> None:
        sqs(tls={"verify": False}).check()

    def test_a_missing_file(self, sqs: Any, tmp_path: Path) -> None:
        with pytest.raises(Permanent, match=r"tls\.ca"):
            sqs(tls={"ca": str(tmp_path / "missing.pem")}).check()
