from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.connectors.files import FilesSink, FilesSource
from penstock.testing.contract import SinkContract, SourceContract


class TestFilesSource(SourceContract):
    component = FilesSource
    batch_limit = {"max_files": 1}

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "in"), "watch": True, "order": "name"}

    @pytest.fixture
    def put(self, tmp_path: Path) -> Any:
        (tmp_path / "in").mkdir()
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            lines = b"".join(each + b"\n" for each in self.encode(rows, schema))
            (tmp_path / "in" / f"{next(numbers):03d}.jsonl").write_bytes(lines)

        return put


class TestFilesSourceTail(TestFilesSource):
    unsupported = {"test_batch_limit": "a growing file is read to its end in one batch"}

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "in"), "tail": True}

    @pytest.fixture
    def put(self, tmp_path: Path) -> Any:
        (tmp_path / "in").mkdir()

        def put(rows: Any, schema: Any) -> None:
            with (tmp_path / "in" / "a.jsonl").open("ab") as file:
                file.write(b"".join(each + b"\n" for each in self.encode(rows, schema)))

        return put


class TestFilesSink(SinkContract):
    component = FilesSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "out")}

    @pytest.fixture
    def rows(self, tmp_path: Path) -> Any:
        def rows(schema: Any) -> Any:
            found = sorted((tmp_path / "out").rglob("*.jsonl"))
            payloads = [line for path in found for line in path.read_bytes().split(b"\n") if line]
            return self.decode(payloads, schema)

        return rows


class TestFilesSinkRolling(TestFilesSink):
    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "out"), "roll": {"max_size": "1 MB"}}


class TestFilesSinkAppending(TestFilesSink):
    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "out" / "all.jsonl"), "append": True}


class TestFilesSourceParquet(TestFilesSource):
    format = "parquet"

    @pytest.fixture
    def put(self, tmp_path: Path) -> Any:
        (tmp_path / "in").mkdir()
        numbers = count()

        def put(rows: Any, schema: Any) -> None:
            path = tmp_path / "in" / f"{next(numbers):03d}.parquet"
            parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)

        return put


class TestFilesSinkParquet(SinkContract):
    component = FilesSink
    format = "parquet"

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "out"), "roll": {"max_size": "1 MB"}}

    @pytest.fixture
    def rows(self, tmp_path: Path) -> Any:
        def rows(schema: Any) -> Any:
            found = sorted((tmp_path / "out").rglob("*.parquet"))
            return [row for path in found for row in parquet.read_table(path).to_pylist()]

        return rows
