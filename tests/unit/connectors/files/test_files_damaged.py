"""Files whose content is damaged: inference of columns, and reading."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.connectors.files.compression import FileWindow
from penstock.core.errors import Permanent, PlanError, Transient
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import FileFormat, Read

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = pa.RecordBatch.from_pylist([{"id": n, "name": "x" * n} for n in range(50)], COLUMNS)
FORMATS: dict[str, FileFormat[Any]] = {
    "arrow": Arrow(ArrowConfig()),
    "avro": Avro(AvroConfig()),
    "parquet": Parquet(ParquetConfig()),
}


def content(format_: FileFormat[Any], rows: pa.RecordBatch = ROWS) -> bytes:
    out = io.BytesIO()
    writer = format_.file_writer(out, rows.schema)
    writer.write(rows)
    writer.close()
    return out.getvalue()


def source(directory: Path, format_: FileFormat[Any]) -> FilesSource:
    files = FilesSource(FilesSourceConfig(path=str(directory), order="name"))
    files.format, files.columns = format_, COLUMNS
    return files


def damaged(name: str) -> list[bytes]:
    whole = content(FORMATS[name])
    renamed = whole.replace(b"name", b"n\xffme").replace(b'"fields"', b'"feelds"')
    return [renamed, whole[: len(whole) // 3], b"\x00" * 100, b"plain text"]


def test_wrong_header_ends_the_read_and_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id;name\n1;x\n")
    files = source(tmp_path, Csv(CsvConfig()))
    with pytest.raises(Permanent, match=f"cannot read {tmp_path}/a.csv: expected a header"):
        for partition in files.partitions({"files": 0}, files.latest_offset({"files": 0})):
            list(files.read(partition, Read()))


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", FORMATS)
def test_inference_of_damaged_file_names_the_file(tmp_path: Path, name: str) -> None:
    format_ = FORMATS[name]
    for broken in damaged(name):
        (tmp_path / "b").write_bytes(broken)
        if format_.infer_file(io.BytesIO(broken)) is not None:
            continue
        with pytest.raises(PlanError, match=f"{tmp_path}/b") as raised:
            source(tmp_path, format_).infer_schema()
        assert raised.value.code == "missing-schema" and raised.value.hint


@pytest.mark.parametrize("name", FORMATS)
def test_inference_ignores_damaged_file_beside_a_valid_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "b").write_bytes(content(FORMATS[name]))
    (tmp_path / "a").write_bytes(damaged(name)[0])
    assert source(tmp_path, FORMATS[name]).infer_schema() == COLUMNS


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_file_is_a_bad_record(tmp_path: Path, name: str) -> None:
    for broken in damaged(name):
        (tmp_path / "b").write_bytes(broken)
        files, read = source(tmp_path, FORMATS[name]), Read()
        (partition,) = files.partitions({"files": 0}, files.latest_offset({"files": 0}))
        rows = sum(batch.num_rows for batch in files.read(partition, read))
        assert rows == 50 or read.bad


def test_inference_of_files_with_different_types_names_the_files(tmp_path: Path) -> None:
    format_ = FORMATS["parquet"]
    (tmp_path / "a").write_bytes(content(format_))
    (tmp_path / "b").write_bytes(content(format_, pa.record_batch({"id": [["x"]]})))
    with pytest.raises(PlanError, match=f"{tmp_path}/a, {tmp_path}/b") as raised:
        source(tmp_path, format_).infer_schema()
    assert raised.value.code == "missing-schema"


def test_file_of_unsupported_schema(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "string"]}]}
    header = json.dumps(schema).encode()
    length = bytes([len(header) * 2 & 0x7F | 0x80, len(header) * 2 >> 7])
    (tmp_path / "a").write_bytes(
        b"Obj\x01\x02\x16avro.schema" + length + header + b"\x00" + b"s" * 16
    )
    files, read = source(tmp_path, FORMATS["avro"]), Read()
    with pytest.raises(PlanError, match=f"{tmp_path}/a"):
        files.infer_schema()
    (partition,) = files.partitions({"files": 0}, files.latest_offset({"files": 0}))
    assert not list(files.read(partition, read))
    assert not read.bad


def test_corrupt_length_does_not_allocate_memory() -> None:
    whole = bytearray(content(FORMATS["arrow"]))
    whole[12:16] = (2**31 - 8).to_bytes(4, "little")
    read = Read()
    without_footer = bytes(whole[:-10])
    assert not list(FORMATS["arrow"].read_file(Hungry(without_footer), COLUMNS, "f", read))
    assert [bad.error.code for bad in read.bad] == ["not-arrow"]


class Hungry(io.BytesIO):
    """A file that allocates the requested size."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > 1 << 24:
            raise MemoryError
        return super().read(size)


@pytest.mark.parametrize("name", FORMATS)
def test_failing_disk_is_not_a_bad_record(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(window: FileWindow, buffer: Any) -> int:
        window.failure = OSError(5, "Input/output error")
        raise window.failure

    (tmp_path / "a").write_bytes(content(FORMATS[name]))
    files, read = source(tmp_path, FORMATS[name]), Read()
    (partition,) = files.partitions({"files": 0}, files.latest_offset({"files": 0}))
    monkeypatch.setattr(FileWindow, "readinto", fail)
    with pytest.raises(Transient, match=f"{tmp_path}/a"):
        list(files.read(partition, read))
    with pytest.raises(Transient, match=f"{tmp_path}/a"):
        files.infer_schema()


def test_inference_ignores_deep_json_objects() -> None:
    json_format = Json(JsonConfig())
    deep = [b'{"a":' * levels + b"1" + b"}" * levels for levels in (120, 400, 900, 5000)]
    assert json_format.infer_schema(pa.array([*deep, b'{"id":1}'])).names == ["id"]


def test_parquet_text_that_is_not_utf8_is_a_bad_record(tmp_path: Path) -> None:
    format_ = Parquet(ParquetConfig(compression="none"))
    rows = pa.RecordBatch.from_pylist([{"id": 1, "name": "unmistakable"}], COLUMNS)
    (tmp_path / "a").write_bytes(content(format_, rows).replace(b"mistakable", b"mistak\xffble"))
    files, read = source(tmp_path, format_), Read()
    (partition,) = files.partitions({"files": 0}, files.latest_offset({"files": 0}))
    assert not list(files.read(partition, read))
    assert [(bad.position, bad.error.code) for bad in read.bad] == [(1, "not-utf8")]
