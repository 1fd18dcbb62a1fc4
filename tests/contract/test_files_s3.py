from __future__ import annotations

import io
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pyarrow import parquet

from interruptions import check_cut_responses
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
    """The client takes such a response for one of an empty file, or for bytes of its memory."""
    content = b'{"id": 1}\n' * 4000
    bucket.put("in/a.jsonl", content)
    system = StorageOptions.model_validate(bucket.server.storage).open_s3("us-east-1")
    storage, path, gate = (
        ArrowStorage(system, "s3://"), f"{bucket.name}/in/a.jsonl", bucket.server.gate,
    )  # fmt: skip
    found = check_cut_responses(gate, lambda: storage.stat(path))
    assert found is not None and found.size == len(content)
    assert check_cut_responses(gate, lambda: storage.open(path).seek(0, io.SEEK_END)) == len(
        content
    )
    assert check_cut_responses(gate, lambda: storage.read(path), len(content)) == content
    assert check_cut_responses(gate, lambda: list(storage.walk(bucket.name))) == [found]


def test_reads_whose_last_byte_is_the_mark_of_an_incomplete_read(bucket: Bucket) -> None:
    content = bytes(range(256)) * 2
    bucket.put("a", content)
    storage = ArrowStorage(
        StorageOptions.model_validate(bucket.server.storage).open_s3("us-east-1"), "s3://"
    )
    with storage.open(f"{bucket.name}/a") as file:
        assert [file.read(1) for _ in content] == [bytes([value]) for value in content]
        assert file.read(1) == file.read() == b"" and file.seek(-256, io.SEEK_CUR) == 256
        assert file.read() == content[256:]


def test_a_listing_that_lacks_its_second_page() -> None:
    pages = [pafs.FileInfo(f"b/{number:04}", pafs.FileType.File) for number in range(1500)]
    listings = [pages[:1000], pages]

    class System:
        def get_file_info(self, selector: Any) -> Any:
            return listings.pop(0)

    storage = ArrowStorage(System(), "s3://")  # type: ignore[arg-type]
    assert len(storage.names("b")) == 1500 and listings == []
