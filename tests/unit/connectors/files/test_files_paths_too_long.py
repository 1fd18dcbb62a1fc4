"""Values of `partition_by` that make paths too long, and files that cannot be published."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from penstock.connectors.files import FilesSink, FilesSinkConfig
from penstock.connectors.files.local import LocalStorage
from penstock.connectors.files.object_store import ArrowStorage
from penstock.connectors.files.storage import Storage
from penstock.core.errors import Permanent
from penstock.sdk import BatchId, Context, RecordError

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("w", pa.string())])


@pytest.fixture
def create_sink(tmp_path: Path, lines: Any) -> Any:
    def create_sink(*partition_by: str) -> FilesSink:
        options = {"path": str(tmp_path / "out"), "partition_by": list(partition_by)}
        sink = FilesSink(FilesSinkConfig.model_validate(options), Context("p", "n"))
        sink.format = lines
        return sink

    return create_sink


def write_batch(sink: FilesSink, number: int, *values: str) -> list[tuple[int, RecordError]]:
    """Writes a batch with a row for each value. Returns the failures."""
    batch = BatchId("q", number)
    writer = sink.writer(None, batch, 0, SCHEMA)
    rows = [{"id": index, "v": value, "w": "w"} for index, value in enumerate(values)]
    failures = writer.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    sink.commit(batch, [json.loads(json.dumps(writer.commit()))])
    return [tuple(failure) for failure in failures]


def visible_ids(root: Path) -> list[int]:
    texts = [path.read_text() for path in (root / "out").rglob("*.jsonl")]
    return sorted(json.loads(line)["id"] for text in texts for line in text.splitlines())


@pytest.mark.parametrize("value", ["x" * 300, "ü" * 43, "x" * 254])
def test_a_row_with_a_long_value_is_a_dead_letter(
    create_sink: Any, tmp_path: Path, value: str
) -> None:
    sink = create_sink("v", "w")
    ((index, error),) = write_batch(sink, 0, "a", value, "b")
    assert (index, error.code) == (1, "path-too-long")
    assert "255 bytes" in error.message
    assert write_batch(sink, 1, "c") == []
    assert visible_ids(tmp_path) == [0, 0, 2]


def test_the_longest_value_is_written(create_sink: Any, tmp_path: Path) -> None:
    assert write_batch(create_sink("v"), 0, "x" * 253) == []
    assert visible_ids(tmp_path) == [0]


def test_a_key_of_an_object_store_has_1024_bytes() -> None:
    storage = ArrowStorage(pafs.LocalFileSystem(), "s3://")
    assert storage.excess("bucket/" + "x" * 1024) is None
    assert storage.excess("bucket/" + "x" * 1025) is not None
    hdfs = ArrowStorage(pafs.LocalFileSystem(), "hdfs://")
    assert hdfs.excess("/" + "x" * 256) is not None


def test_a_path_of_a_local_disk_has_4095_bytes() -> None:
    assert LocalStorage().excess("/" + "x/" * 2047) is None
    assert LocalStorage().excess("/" + "x/" * 2048) is not None


def test_a_long_prefix_is_invalid(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="100"):
        FilesSinkConfig.model_validate({"path": str(tmp_path), "prefix": "x" * 101})


def test_a_file_that_cannot_be_published_does_not_keep_the_others(
    create_sink: Any, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "v=a").write_text("a file in place of the directory")
    sink = create_sink("v")
    with pytest.raises(Permanent) as caught:
        write_batch(sink, 0, "a", "b")
    assert caught.value.code == "not-a-directory"
    assert visible_ids(tmp_path) == [1]
    with pytest.raises(Permanent, match="cannot publish"):
        create_sink("v").recover()
    (hidden,) = (tmp_path / "out").rglob("*.tmp")
    assert str(hidden) in str(caught.value.hint)
    hidden.rename(tmp_path / "rows.jsonl")
    after = create_sink("v")
    after.recover()
    write_batch(after, 1, "c")
    assert visible_ids(tmp_path) == [0, 1]


def test_a_ledger_with_a_name_that_is_too_long(create_sink: Any, tmp_path: Path) -> None:
    """Ledgers of earlier versions have such names."""
    sink = create_sink("v")
    write_batch(sink, 0, "a")
    area = sink.staging_area("q")
    storage: Storage = area.storage
    with storage.create(area.path(area.temp(0, "long"))) as file:
        file.write(b'{"id": 5}\n')
    moves = ((area.temp(0, "long"), f"v={'x' * 300}/part.jsonl"),)
    with pytest.raises(Permanent, match="cannot publish"):
        area.commit(replace(area.ledger(), moves=moves))
    with pytest.raises(Permanent) as caught:
        create_sink("v").recover()
    assert caught.value.code == "path-too-long"
    assert "Or move the committed file" in str(caught.value.hint)
