"""The sink of files that appends to one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from penstock.connectors.files import FilesSink, FilesSinkConfig
from penstock.connectors.files.local import LocalStorage
from penstock.core.errors import OptionError, Permanent
from penstock.formats.csv import Csv, CsvConfig
from penstock.sdk import BatchId, Context

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def make(tmp_path: Path, lines: Any) -> Any:
    def make(node: str = "n", format_: Any = lines) -> FilesSink:
        options = {"path": str(tmp_path / "new" / "all.jsonl"), "append": True}
        sink = FilesSink(FilesSinkConfig.model_validate(options), Context("p", node))
        sink.format = format_
        return sink

    return make


def batch(sink: FilesSink, number: int, *partitions: list[int]) -> None:
    id_ = BatchId("q", number)
    receipts = []
    for partition, ids in enumerate(partitions):
        writer = sink.writer(sink.open(), id_, partition, SCHEMA)
        writer.write(pa.RecordBatch.from_pylist([{"id": each} for each in ids], SCHEMA))
        receipts.append(writer.commit())
    sink.commit(id_, receipts)


def ids(root: Path, name: str = "all.jsonl") -> list[int]:
    return [json.loads(line)["id"] for line in (root / "new" / name).read_text().splitlines()]


def test_rows_are_in_the_order_of_batches_and_partitions(make: Any, tmp_path: Path) -> None:
    batch(make(), 0, [1, 2], [3])
    batch(make(), 1, [4])
    batch(make(), 1, [4])
    batch(make(), 2)
    assert ids(tmp_path) == [1, 2, 3, 4]
    assert [path.name for path in (tmp_path / "new").iterdir() if path.name[0] != "."] == [
        "all.jsonl"
    ]


def test_existing_content_remains(make: Any, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "all.jsonl").write_text('{"id": 0}\n')
    batch(make(), 0, [1])
    batch(make("another sink"), 0, [2])
    batch(make(), 1, [3])
    assert ids(tmp_path) == [0, 1, 2, 3]


def test_a_rotated_file_begins_anew(make: Any, tmp_path: Path) -> None:
    sink, file = make(), tmp_path / "new" / "all.jsonl"
    batch(sink, 0, [1])
    file.rename(file.with_name("old"))
    batch(sink, 1, [2])
    file.write_text("")
    batch(sink, 2, [3])
    assert ids(tmp_path, "old") == [1]
    assert ids(tmp_path) == [3]


@pytest.mark.parametrize(("operation", "expected"), [("append", [1, 9, 2]), ("delete", [1, 2, 9])])
def test_rows_of_others_after_a_crash(
    make: Any, tmp_path: Path, monkeypatch: Any, operation: str, expected: list[int]
) -> None:
    """The rows of others are kept; rows that are complete before them are not repeated."""
    sink, file = make(), tmp_path / "new" / "all.jsonl"
    batch(sink, 0, [1])
    with monkeypatch.context() as patch:
        patch.setattr(f"penstock.connectors.files.local.LocalStorage.{operation}", kill)
        with pytest.raises(KeyboardInterrupt):
            batch(sink, 1, [2])
    with file.open("a") as another:
        another.write('{"id": 9}\n')
    make().recover()
    assert ids(tmp_path) == expected


def test_equal_rows_of_others_do_not_replace_rows(
    make: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    append = LocalStorage.append

    def append_after_another(
        storage: LocalStorage, source: str, target: str, start: int | None
    ) -> None:
        with Path(target).open("ab") as file:
            file.write(Path(source).read_bytes())
        append(storage, source, target, start)

    monkeypatch.setattr(LocalStorage, "append", append_after_another)
    batch(make(), 0, [1, 2])
    assert ids(tmp_path) == [1, 2, 1, 2]


def kill(*arguments: Any) -> None:
    raise KeyboardInterrupt


def test_a_directory_at_the_path(make: Any, tmp_path: Path) -> None:
    (tmp_path / "new" / "all.jsonl").mkdir(parents=True)
    with pytest.raises(Permanent) as raised:
        make().check()
    assert raised.value.code == "not-a-directory"
    assert "expected a file, found a directory" in (raised.value.detail or "")
    with pytest.raises(Permanent, match="cannot publish"):
        batch(make(), 0, [1])


def test_formats_with_a_header(make: Any) -> None:
    with pytest.raises(OptionError, match="without header"):
        make(format_=Csv(CsvConfig())).check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "s3://bucket/a.jsonl"}, "requires a local file"),
        ({"path": "out", "roll": {"max_size": "1 MB"}, "prefix": "a"}, "excludes prefix, roll"),
    ],
)
def test_excluded_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FilesSinkConfig.model_validate({**options, "append": True})
