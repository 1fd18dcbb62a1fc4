"""Files after reading: deleted or moved, and later files of the same paths."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.sdk import Context, Read

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def create_source(tmp_path: Path, lines: Any) -> Any:
    def create_source(*paths: str, after_read: Any = "delete", **options: Any) -> FilesSource:
        locations = [str(tmp_path / path) for path in paths or ("in",)]
        if isinstance(after_read, str) and after_read != "delete":
            after_read = {"move": str(tmp_path / after_read)}
        config = FilesSourceConfig.model_validate(
            {"path": locations, "after_read": after_read, "watch": True, **options}
        )
        source = FilesSource(config, Context(state=tmp_path / "state"))
        source.format, source.columns = lines, SCHEMA
        return source

    return create_source


@pytest.fixture
def put(tmp_path: Path) -> Any:
    def put(name: str, *ids: int) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps({'id': id})}\n" for id in ids))

    return put


def read_new(source: FilesSource, start: Any) -> tuple[list[int], Any]:
    """Returns the ids of the files after an offset, and the next offset."""
    end = source.latest_offset(start)
    batches = [
        batch
        for partition in source.partitions(start, end)
        for batch in source.read(partition, Read())
    ]
    return sorted(id_ for batch in batches for id_ in batch.column("id").to_pylist()), end


@pytest.mark.parametrize("after_read", ["delete", "done"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_later_file_of_the_same_path_is_read(
    create_source: Any, put: Any, tmp_path: Path, after_read: str, restart: bool
) -> None:
    source, offset = create_source(after_read=after_read), {"files": 0}
    for id_ in range(3):
        put("in/a.jsonl", id_)
        ids, offset = read_new(source, offset)
        assert ids == [id_]
        source.commit(offset)
        assert not (tmp_path / "in/a.jsonl").exists()
        source = create_source(after_read=after_read) if restart else source
    ids, end = read_new(source, offset)
    assert (ids, end["files"]) == ([], 3)


def test_a_file_is_known_until_it_is_archived(create_source: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    source = create_source()
    _, offset = read_new(source, {"files": 0})
    assert read_new(source, offset) == ([], offset)
    assert read_new(create_source(), offset) == ([], offset)


def test_the_archive_is_known_to_other_processes(create_source: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    reader, driver = create_source(), create_source()
    _, offset = read_new(reader, {"files": 0})
    driver.commit(offset)
    put("in/a.jsonl", 2)
    put("in/b.jsonl", 3)
    ids, end = read_new(reader, offset)
    assert (ids, end["files"]) == ([2, 3], 3)


def test_a_restart_does_not_archive_a_later_file(
    create_source: Any, put: Any, tmp_path: Path
) -> None:
    put("in/a.jsonl", 1)
    os.utime(tmp_path / "in/a.jsonl", (1, 1))
    source = create_source()
    _, offset = read_new(source, {"files": 0})
    source.commit(offset)
    put("in/a.jsonl", 2)
    os.utime(tmp_path / "in/a.jsonl", (1, 1))
    create_source().commit(offset)
    assert (tmp_path / "in/a.jsonl").exists()


def test_a_file_modified_after_reading_is_a_new_file(create_source: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    source = create_source()
    _, offset = read_new(source, {"files": 0})
    put("in/a.jsonl", 2, 3)
    source.commit(offset)
    assert read_new(source, offset)[0] == [2, 3]


@pytest.mark.parametrize("paths", [["in"], ["in/**/*.jsonl"], ["in/a/x.jsonl", "in/b/x.jsonl"]])
def test_moved_files_keep_their_paths(
    create_source: Any, put: Any, tmp_path: Path, paths: list[str]
) -> None:
    put("in/a/x.jsonl", 1)
    put("in/b/x.jsonl", 2)
    source = create_source(*paths, after_read="done")
    _, offset = read_new(source, {"files": 0})
    source.commit(offset)
    assert moved(tmp_path) == {"a/x.jsonl": 1, "b/x.jsonl": 2}


def test_a_moved_file_does_not_overwrite_another(
    create_source: Any, put: Any, tmp_path: Path
) -> None:
    source, offset = create_source("in/x.v1.jsonl", after_read="done"), {"files": 0}
    for id_ in range(3):
        put("in/x.v1.jsonl", id_)
        _, offset = read_new(source, offset)
        source.commit(offset)
    assert moved(tmp_path) == {"x.v1.jsonl": 0, "x-1.v1.jsonl": 1, "x-2.v1.jsonl": 2}


def test_moved_files_below_the_path_are_not_read(create_source: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    source = create_source(after_read="in/done")
    _, offset = read_new(source, {"files": 0})
    source.commit(offset)
    assert read_new(source, offset) == ([], offset)


def moved(root: Path) -> dict[str, int]:
    """Returns the ids of the moved files."""
    files = [path for path in (root / "done").rglob("*") if path.is_file()]
    return {
        str(path.relative_to(root / "done")): json.loads(path.read_text())["id"] for path in files
    }
