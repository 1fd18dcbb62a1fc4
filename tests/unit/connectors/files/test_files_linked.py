"""Files with several paths: symbolic links, hard links, links of directories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.formats.json import Json, JsonConfig
from penstock.sdk import Context, Read

SCHEMA = pa.schema([("id", pa.int64())])


def source(path: str | list[str], **options: Any) -> FilesSource:
    files = FilesSource(FilesSourceConfig(path=path, **options))
    files.format, files.columns = Json(JsonConfig()), SCHEMA
    return files


def read(files: FilesSource, start: Any = None) -> tuple[list[tuple[str, int]], Any]:
    """Returns the name and the ID of each row, and the end."""
    start = start or {"files": 0}
    end = files.latest_offset(start)
    request = Read(metadata=("path",))
    rows = [
        (Path(row["path"]).name, row["id"])
        for partition in files.partitions(start, end)
        for batch in files.read(partition, request)
        for row in batch.to_pylist()
    ]
    return sorted(rows), end


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with two files."""
    (tmp_path / "in").mkdir()
    for number, name in enumerate(["m.jsonl", "n.jsonl"]):
        (tmp_path / "in" / name).write_text(f'{{"id": {number}}}\n')
    return tmp_path / "in"


EXPECTED = [("m.jsonl", 0), ("n.jsonl", 1)]


def test_linked_files_are_read_once(directory: Path) -> None:
    (directory / "a.jsonl").symlink_to("m.jsonl")
    (directory / "z.jsonl").symlink_to(directory / "m.jsonl")
    os.link(directory / "n.jsonl", directory / "o.jsonl")
    assert read(source(str(directory)))[0] == EXPECTED


def test_linked_directories_are_read_once(directory: Path, tmp_path: Path) -> None:
    (directory / "cycle").symlink_to(directory)
    (directory / "a").mkdir()
    (directory / "a" / "p.jsonl").write_text('{"id": 2}\n')
    (directory / "b").symlink_to(directory / "a")
    (tmp_path / "other").symlink_to(directory)
    paths = [str(tmp_path / "other"), str(directory), str(directory / "m.jsonl")]
    assert read(source(paths))[0] == [*EXPECTED, ("p.jsonl", 2)]


def test_links_are_read_if_no_other_path_matches(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.jsonl").symlink_to(directory / "m.jsonl")
    assert read(source(str(tmp_path / "links")))[0] == [("a.jsonl", 0)]


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_that_appears_later_is_not_read(directory: Path, tmp_path: Path, link: Any) -> None:
    files = source(str(directory), watch=True)
    files.context = Context(state=tmp_path)
    rows, end = read(files)
    assert rows == EXPECTED
    link(directory / "m.jsonl", directory / "later.jsonl")
    (directory / "new.jsonl").write_text('{"id": 5}\n')
    monkey = source(str(directory), watch=True)
    monkey.context = Context(state=tmp_path)
    assert read(monkey, end)[0] == [("new.jsonl", 5)]


def test_link_of_a_growing_file_is_not_read(directory: Path) -> None:
    (directory / "current.jsonl").symlink_to("n.jsonl")
    assert read(source(str(directory), tail=True))[0] == EXPECTED
