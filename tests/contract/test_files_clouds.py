"""The contracts of files in Google Cloud Storage and Azure."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from penstock.connectors.files import FilesSink, FilesSource
from penstock.testing.contract import SinkContract, SourceContract
from servers.azurite import Azurite
from servers.gcs import Gcs
from servers.http_objects import HttpBucket, ObjectServer


class OnGcs:
    """Fixtures of both contracts."""

    transport = "Google Cloud Storage"

    @pytest.fixture
    def store(self, gcs: Gcs) -> ObjectServer:
        return gcs


class OnAzure:
    """Fixtures of both contracts."""

    transport = "Azure"

    @pytest.fixture
    def store(self, azurite: Azurite) -> ObjectServer:
        return azurite


class Reading(SourceContract):
    component = FilesSource
    batch_limit = {"max_files": 1}

    @pytest.fixture
    def bucket(self, store: ObjectServer) -> HttpBucket:
        return store.new_bucket()

    @pytest.fixture
    def server(self, store: ObjectServer) -> Any:
        return store.gate

    @pytest.fixture
    def options(self, bucket: HttpBucket) -> dict[str, Any]:
        path = f"{bucket.url}/in"
        return {"path": path, "watch": True, "order": "name", "storage": bucket.server.storage}

    @pytest.fixture
    def put(self, bucket: HttpBucket) -> Any:
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            lines = b"".join(each + b"\n" for each in self.encode(rows, schema))
            bucket.put(f"in/{next(numbers):03d}.jsonl", lines)

        return put


class Writing(SinkContract):
    component = FilesSink

    @pytest.fixture
    def bucket(self, store: ObjectServer) -> HttpBucket:
        return store.new_bucket()

    @pytest.fixture
    def server(self, store: ObjectServer) -> Any:
        return store.gate

    @pytest.fixture
    def options(self, bucket: HttpBucket) -> dict[str, Any]:
        return {"path": f"{bucket.url}/a b", "storage": bucket.server.storage}

    @pytest.fixture
    def rows(self, bucket: HttpBucket) -> Any:
        def rows(schema: Any) -> Any:
            lines = [line for key in bucket.names() for line in bucket.get(key).split(b"\n")]
            return self.decode([line for line in lines if line], schema)

        return rows


class TestGcsSource(OnGcs, Reading):
    pass


class TestGcsSink(OnGcs, Writing):
    pass


class TestAzureSource(OnAzure, Reading):
    pass


class TestAzureSink(OnAzure, Writing):
    pass
