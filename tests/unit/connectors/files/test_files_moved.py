"""Discovery logs of projects that were moved, or that are reached by a symbolic link."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.core.paths import Project
from penstock.sdk import Context, Read

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def create_source(lines: Any) -> Any:
    def create_source(project: Path, path: Path | None = None, **options: Any) -> FilesSource:
        files = str((path or project) / "in" / "*.jsonl")
        config = FilesSourceConfig.model_validate({"path": files, **options})
        context = Context(state=project / ".penstock" / "nodes" / "n", project=project)
        source = FilesSource(config, context)
        source.format, source.columns = lines, SCHEMA
        return source

    return create_source


def put(project: Path, name: str, id_: int) -> None:
    (project / "in").mkdir(parents=True, exist_ok=True)
    with (project / "in" / name).open("a") as file:
        file.write(json.dumps({"id": id_}) + "\n")


def read_new(source: FilesSource, start: Any) -> tuple[list[int], Any]:
    """Returns the ids of the files after an offset, and the next offset."""
    end = source.latest_offset(start)
    batches = [
        batch
        for partition in source.partitions(start, end)
        for batch in source.read(partition, Read())
    ]
    return sorted(id_ for batch in batches for id_ in batch.column("id").to_pylist()), end


@pytest.mark.parametrize("options", [{"watch": True}, {"tail": True}], ids=["watch", "tail"])
def test_a_moved_project_resumes(create_source: Any, tmp_path: Path, options: Any) -> None:
    put(tmp_path / "one", "a.jsonl", 1)
    ids, offset = read_new(create_source(tmp_path / "one", **options), {"files": 0})
    assert ids == [1]
    (tmp_path / "one").rename(tmp_path / "two")
    put(tmp_path / "two", "b.jsonl", 2)
    moved = create_source(tmp_path / "two", **options)
    ids, end = read_new(moved, offset)
    assert ids == [2]
    assert read_ids(moved, {"files": 0}, end) == [1, 2]


def read_ids(source: FilesSource, start: Any, end: Any) -> list[int]:
    return [
        id_
        for partition in source.partitions(start, end)
        for batch in source.read(partition, Read())
        for id_ in batch.column("id").to_pylist()
    ]


@pytest.mark.parametrize("first", ["real", "link"])
@pytest.mark.parametrize("absolute", [False, True], ids=["relative path", "absolute path"])
def test_a_symbolic_link_to_the_project_resumes(
    create_source: Any, tmp_path: Path, first: str, absolute: bool
) -> None:
    put(tmp_path / "real", "a.jsonl", 1)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    second = "link" if first == "real" else "real"
    path = tmp_path / "real" if absolute else None
    _, offset = read_new(create_source(tmp_path / first, path), {"files": 0})
    put(tmp_path / "real", "b.jsonl", 2)
    assert read_new(create_source(tmp_path / second, path), offset)[0] == [2]


def test_files_outside_the_project_keep_their_paths(create_source: Any, tmp_path: Path) -> None:
    put(tmp_path / "data", "a.jsonl", 1)
    (tmp_path / "one").mkdir()
    _, offset = read_new(create_source(tmp_path / "one", tmp_path / "data"), {"files": 0})
    (tmp_path / "one").rename(tmp_path / "two")
    put(tmp_path / "data", "b.jsonl", 2)
    assert read_new(create_source(tmp_path / "two", tmp_path / "data"), offset)[0] == [2]


@pytest.mark.parametrize("options", [{"watch": True}, {"tail": True}], ids=["watch", "tail"])
@pytest.mark.parametrize("project", ["two", "one/inner", ".", "two/inner"])
def test_files_that_a_moved_project_leaves_behind_keep_their_paths(
    create_source: Any, tmp_path: Path, project: str, options: Any
) -> None:
    """The option `path` has the same absolute path in both directories of the project."""
    one, moved = tmp_path / "one", tmp_path / project
    put(one, "a.jsonl", 1)
    _, offset = read_new(create_source(one, **options), {"files": 0})
    state = moved / ".penstock"
    state.parent.mkdir(parents=True, exist_ok=True)
    (one / ".penstock").rename(state)
    put(one, "b.jsonl", 2)
    ids, end = read_new(create_source(moved, one, **options), offset)
    assert ids == [2]
    put(one, "c.jsonl", 3)
    assert read_new(create_source(moved, one, **options), end)[0] == [3]


def test_a_project_that_is_moved_into_its_former_directory_resumes(
    create_source: Any, tmp_path: Path
) -> None:
    one, inner = tmp_path / "one", tmp_path / "one" / "inner"
    put(one, "a.jsonl", 1)
    _, offset = read_new(create_source(one), {"files": 0})
    inner.mkdir()
    for name in ("in", ".penstock"):
        (one / name).rename(inner / name)
    put(inner, "b.jsonl", 2)
    assert read_new(create_source(inner), offset)[0] == [2]


def test_a_log_of_an_earlier_version_has_absolute_paths(create_source: Any, tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", 1)
    _, offset = read_new(create_source(tmp_path), {"files": 0})
    log = tmp_path / ".penstock" / "nodes" / "n" / "files.log"
    text = log.read_text()
    assert '"path": "in/a.jsonl"' in text
    log.write_text(text.replace('"in/a.jsonl"', json.dumps(str(tmp_path / "in/a.jsonl"))))
    put(tmp_path, "b.jsonl", 2)
    assert read_new(create_source(tmp_path), offset)[0] == [2]


@pytest.mark.parametrize("path", ["/p/in/a", "/p", "/pq/a", "s3://p/in", "/p/in:/a b"])
def test_relative_paths_are_reversible(path: str) -> None:
    project = Project(Path("/p"))
    assert Path(project.absolute(project.relative(path))) == Path(path)
    default = Project()
    assert Path(default.absolute(default.relative(path))) == Path(path)
