from __future__ import annotations

import io
from contextlib import suppress
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.connectors.files import FilesSink, FilesSource
from penstock.connectors.files.object_store import ArrowStorage
from penstock.sdk.object_store import StorageOptions
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract.rows import SIMPLE, make_rows
from servers.s3 import S3, Bucket, Notified


class OnS3:
    """Fixtures of both contracts."""

    transport = "S3"
    wrong_credentials = {"storage": {"auth": {"secret_key": "wrong"}}}

    @pytest.fixture
    def server(self, s3: S3) -> Any:
        return s3.gate

    @pytest.fixture
    def options(self, bucket: Bucket) -> dict[str, Any]:
        return {"path": f"{bucket.url}/a b", "storage": bucket.server.storage}


class TestS3Source(OnS3, SourceContract):
    component = FilesSource
    batch_limit = {"max_files": 1}

    @pytest.fixture
    def options(self, bucket: Bucket) -> dict[str, Any]:
        storage = bucket.server.storage
        return {"path": f"{bucket.url}/in", "watch": True, "order": "name", "storage": storage}

    @pytest.fixture
    def put(self, bucket: Bucket) -> Any:
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            lines = b"".join(each + b"\n" for each in self.encode(rows, schema))
            bucket.put(f"in/{next(numbers):03d}.jsonl", lines)

        return put

    def test_check_of_paused_server_times_out(
        self, options: dict[str, Any], server: Any, put: Any
    ) -> None:
        put(make_rows(1), SIMPLE)
        super().test_check_of_paused_server_times_out(options, server)


class TestS3SourceNotified(TestS3Source):
    transport = "S3 with notifications"
    wrong_credentials = {"notifications": {"auth": {"secret_key": "wrong"}}}

    @pytest.fixture
    def options(self, queue: Notified) -> dict[str, Any]:
        queue.notify()
        return {**queue.options(), "order": "name"}


class TestS3SourceParquet(TestS3Source):
    format = "parquet"

    @pytest.fixture
    def put(self, bucket: Bucket) -> Any:
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            content = io.BytesIO()
            parquet.write_table(pa.Table.from_pylist(rows, schema=schema), content)
            bucket.put(f"in/{next(numbers):03d}.parquet", content.getvalue())

        return put


class TestS3Sink(OnS3, SinkContract):
    component = FilesSink

    @pytest.fixture
    def rows(self, bucket: Bucket) -> Any:
        def rows(schema: Any) -> Any:
            lines = [line for key in bucket.names() for line in bucket.get(key).split(b"\n")]
            return self.decode([line for line in lines if line], schema)

        return rows


class TestS3SinkParquetRolling(OnS3, SinkContract):
    component = FilesSink
    format = "parquet"

    @pytest.fixture
    def options(self, bucket: Bucket) -> dict[str, Any]:
        roll = {"max_size": "1 MB"}
        return {"path": f"{bucket.url}/out", "storage": bucket.server.storage, "roll": roll}

    @pytest.fixture
    def rows(self, bucket: Bucket) -> Any:
        def rows(schema: Any) -> Any:
            tables = [parquet.read_table(io.BytesIO(bucket.get(key))) for key in bucket.names()]
            return [row for table in tables for row in table.to_pylist()]

        return rows


def test_responses_that_are_cut_between_their_headers(bucket: Bucket) -> None:
    """The client takes such a response for one of an empty file."""
    bucket.put("in/a.jsonl", b'{"id": 1}\n')
    system = StorageOptions.model_validate(bucket.server.storage).open_s3("us-east-1")
    storage, path, gate = (
        ArrowStorage(system, "s3://"),
        f"{bucket.name}/in/a.jsonl",
        bucket.server.gate,
    )
    found = storage.stat(path)
    for request in (lambda: storage.stat(path), lambda: storage.open(path).seek(0, io.SEEK_END)):
        before = gate.passed
        expected = request()
        assert expected in (found, 10)
        for place in range(1, gate.passed - before, 40):
            gate.after(place, gate.drop)
            with suppress(OSError):
                assert request() == expected
            gate.heal()
