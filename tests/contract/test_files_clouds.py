"""Files in Google Cloud Storage and Azure, which have one client."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from penstock.connectors.files import FilesSink, FilesSource, cloud_store
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract.rows import SIMPLE, make_rows
from servers.azurite import Azurite
from servers.gcs import Gcs
from servers.http_objects import HttpBucket


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a server that does not answer be noticed sooner."""
    monkeypatch.setattr(cloud_store, "STALL_SECONDS", 4.0)


class TestGcsSource(SourceContract):
    component = FilesSource
    transport = "Google Cloud Storage"
    batch_limit = {"max_files": 1}

    @pytest.fixture
    def bucket(self, gcs: Gcs) -> HttpBucket:
        return gcs.new_bucket()

    @pytest.fixture
    def server(self, gcs: Gcs) -> Any:
        return gcs.gate

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

    @pytest.mark.usefixtures("short_waits")
    def test_check_of_paused_server_times_out(
        self, options: dict[str, Any], server: Any, put: Any
    ) -> None:
        put(make_rows(1), SIMPLE)
        super().test_check_of_paused_server_times_out(options, server)


class TestAzureSink(SinkContract):
    component = FilesSink
    transport = "Azure"

    @pytest.fixture
    def bucket(self, azurite: Azurite) -> HttpBucket:
        return azurite.new_bucket()

    @pytest.fixture
    def server(self, azurite: Azurite) -> Any:
        return azurite.gate

    @pytest.fixture
    def options(self, bucket: HttpBucket) -> dict[str, Any]:
        return {"path": f"{bucket.url}/a b", "storage": bucket.server.storage}

    @pytest.fixture
    def rows(self, bucket: HttpBucket) -> Any:
        def rows(schema: Any) -> Any:
            lines = [line for key in bucket.names() for line in bucket.get(key).split(b"\n")]
            return self.decode([line for line in lines if line], schema)

        return rows

    @pytest.mark.usefixtures("short_waits")
    def test_check_of_paused_server_times_out(self, options: dict[str, Any], server: Any) -> None:
        super().test_check_of_paused_server_times_out(options, server)
