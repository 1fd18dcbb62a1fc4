"""Files that end the process of their decoder."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.connectors.files.compression import FileWindow
from penstock.connectors.files.local import LocalStorage
from penstock.core.errors import PlanError, Transient
from penstock.engine.sources.source import SourceTask
from penstock.engine.sources.source_readers import read_all
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import FileFormat, Read
from penstock.sdk.forked import CRASHED

COLUMNS = pa.schema([("id", pa.int64())])


class Fragile(Parquet):
    """Parquet whose decoder ends the process at the row -1, and in a file of the column `abort`."""

    def _batches(self, *arguments: Any) -> Iterator[pa.RecordBatch]:
        for batch in super()._batches(*arguments):
            if -1 in batch.column("id").to_pylist():
                os.abort()
            yield batch

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        schema = super().infer_file(file)
        if schema is not None and "abort" in schema.names:
            os.abort()
        return schema


def parquet(*groups: list[int], column: str = "id") -> bytes:
    out = io.BytesIO()
    writer = Parquet(ParquetConfig(row_group_rows=2)).file_writer(out, pa.schema({column: "int64"}))
    for group in groups:
        writer.write(pa.record_batch({column: group}))
    writer.close()
    return out.getvalue()


def source(directory: Path, format_: FileFormat[Any] | None = None) -> FilesSource:
    files = FilesSource(FilesSourceConfig(path=str(directory), order="name"))
    files.format, files.columns = format_ or Fragile(ParquetConfig()), COLUMNS
    return files


def read_isolated(files: FilesSource) -> tuple[list[int], list[tuple[str, int, str]]]:
    """Returns the IDs of all rows, and the origin, position and code of each bad record."""
    read = Read(isolated=True)
    ids: list[int] = []
    for partition in files.partitions({"files": 0}, files.latest_offset({"files": 0})):
        for rows in files.read(partition, read):
            ids += rows.column("id").to_pylist()
    bad = [(Path(each.origin).name, each.position, each.error.code) for each in read.bad]
    return ids, bad


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three files; the second one crashes the decoder after two rows."""
    (tmp_path / "a.parquet").write_bytes(parquet([1, 2]))
    (tmp_path / "b.parquet").write_bytes(parquet([3, 4], [-1, 5]))
    (tmp_path / "c.parquet").write_bytes(parquet([6]))
    return tmp_path


@pytest.mark.slow
def test_file_that_crashes_its_decoder_is_one_bad_record(directory: Path) -> None:
    assert read_isolated(source(directory)) == ([1, 2, 3, 4, 6], [("b.parquet", 3, CRASHED)])


@pytest.mark.slow
def test_files_of_an_object_store_are_copied_before_the_fork(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalStorage, "survives_fork", False)
    readers: list[int] = []
    readinto = FileWindow.readinto

    def record(window: FileWindow, buffer: Any) -> int:
        readers.append(os.getpid())
        if os.getpid() != process:
            os._exit(1)
        return readinto(window, buffer)

    process = os.getpid()
    monkeypatch.setattr(FileWindow, "readinto", record)
    assert read_isolated(source(directory)) == ([1, 2, 3, 4, 6], [("b.parquet", 3, CRASHED)])
    assert readers


@pytest.mark.slow
def test_isolated_reading_equals_reading(tmp_path: Path) -> None:
    files = source(tmp_path, Json(JsonConfig()))
    (tmp_path / "a.jsonl").write_bytes(b'{"id":1}\nbad\n{"id":2}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"id":3}\nbad\n' * 3)[:-8])
    (tmp_path / "c.jsonl").write_bytes(b"\xff\n")
    direct, isolated = Read(metadata=("position",)), Read(metadata=("position",), isolated=True)
    rows: list[Any] = []
    for read in (direct, isolated):
        (partition,) = files.partitions({"files": 0}, files.latest_offset({"files": 0}))
        rows.append([batch.to_pylist() for batch in files.read(partition, read)])
    assert rows[0] == rows[1] and sum(map(len, rows[0])) == 5
    assert str(direct.bad) == str(isolated.bad) and len(direct.bad) == 6


def test_failure_of_the_disk_is_no_bad_record(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(window: FileWindow, buffer: Any) -> int:
        window.failure = OSError(5, "Input/output error")
        raise window.failure

    monkeypatch.setattr(FileWindow, "readinto", fail)
    with pytest.raises(Transient, match="could not read"):
        read_isolated(source(directory))
    with pytest.raises(Transient, match="could not read"):
        source(directory).infer_schema()


@pytest.mark.slow
def test_inference_ignores_a_file_that_crashes_its_decoder(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet([1], column="abort"))
    with pytest.raises(PlanError, match=r"cannot infer the columns of .*/a\.parquet"):
        source(tmp_path).infer_schema()
    (tmp_path / "b.parquet").write_bytes(parquet([1]))
    assert source(tmp_path).infer_schema() == COLUMNS


@pytest.mark.slow
def test_static_table_survives_a_file_that_crashes_its_decoder(directory: Path) -> None:
    spool = Spool("p", "q", "table", "decode", directory=str(directory / "spool"))
    task = SourceTask(source(directory / "*.parquet"), COLUMNS, {}, spool)
    ids = [value for batch in read_all(task) for value in batch.column("id").to_pylist()]
    assert ids == [1, 2, 3, 4, 6]
    (file,) = (directory / "spool").glob("*/*.arrow")
    (letter,) = pa.ipc.open_file(file).read_all().to_pylist()
    assert (letter["code"], letter["payload"], letter["position"]) == (CRASHED, None, 3)
