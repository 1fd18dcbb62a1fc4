from __future__ import annotations

import io
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.connectors.files import FilesSink, FilesSource
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract.rows import SIMPLE, simple
from servers.s3 import S3, Bucket


class OnS3:
    """What both contracts need."""

    @pytest.fixture
    def server(self, s3: S3) -> Any:
        return s3.gate

    @pytest.fixture
    def options(self, bucket: Bucket) -> dict[str, Any]:
        return {"path": f"{bucket.url}/a b", "storage": bucket.server.storage}

    @pytest.fixture(autouse=True)
    def _wrong_secret(self, s3: S3) -> None:
        self.wrong_secret = {"storage": {**s3.storage, "secret_key": "wrong"}}


class TestS3Source(OnS3, SourceContract):
    component = FilesSource
    limited = {"max_files": 1}

    @pytest.fixture
    def options(self, bucket: Bucket) -> dict[str, Any]:
        storage = bucket.server.storage
        return {"path": f"{bucket.url}/in", "watch": True, "order": "name", "storage": storage}

    @pytest.fixture
    def put(self, bucket: Bucket) -> Any:
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            lines = b"".join(each + b"\n" for each in self.encoded(rows, schema))
            bucket.put(f"in/{next(numbers):03d}.jsonl", lines)

        return put

    def test_a_server_that_is_down_is_worth_another_try(
        self, options: dict[str, Any], server: Any, put: Any
    ) -> None:
        put(simple(1), SIMPLE)
        super().test_a_server_that_is_down_is_worth_another_try(options, server)

    def test_a_server_that_does_not_answer_is_given_up(
        self, options: dict[str, Any], server: Any, put: Any
    ) -> None:
        put(simple(1), SIMPLE)
        super().test_a_server_that_does_not_answer_is_given_up(options, server)


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
            return self.decoded([line for line in lines if line], schema)

        return rows


class TestS3SinkParquetRolling(OnS3, SinkContract):
    component = FilesSink
    format = "parquet"

    @pytest.fixture
    def options(self, bucket: Bucket) -> dict[str, Any]:
        roll = {"size": "1 MB"}
        return {"path": f"{bucket.url}/out", "storage": bucket.server.storage, "roll": roll}

    @pytest.fixture
    def rows(self, bucket: Bucket) -> Any:
        def rows(schema: Any) -> Any:
            tables = [parquet.read_table(io.BytesIO(bucket.get(key))) for key in bucket.names()]
            return [row for table in tables for row in table.to_pylist()]

        return rows
